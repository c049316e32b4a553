// Preview draws Block Kit files as an HTML page that looks roughly like Slack,
// to be looked at, or made a picture by a headless browser:
//
//	go run ./bot/slacktest/preview bot/testdata/views/*.zh.json bot/jobnews/testdata/views/*.zh.json > views.html
//	chromium --headless --no-sandbox --screenshot=views.png --window-size=720,2000 views.html
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/megatron-ops/megatron-ops/bot/slacktest"
)

func main() {
	var views []string
	dark := flag.Bool("dark", false, "on a dark ground")
	phone := flag.Bool("phone", false, "as wide as a phone")
	flag.Parse()
	for _, file := range flag.Args() {
		raw, err := os.ReadFile(file)
		if err != nil {
			log.Fatal(err)
		}
		v, err := slacktest.HTML(raw)
		if err != nil {
			log.Fatalf("%s: %v", file, err)
		}
		views = append(views, "<p class=hint>"+filepath.Base(file)+"</p>"+v)
	}
	fmt.Println(slacktest.Page("Block Kit", slacktest.Look{Dark: *dark, Phone: *phone}, views...))
}
