// Fakeslack plays Slack on a port of its own, for tests and for trying the bot by hand. It
// prints its address. /_ctl/state shows its state.
package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/megatron-ops/megatron-ops/bot/slacktest"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:4200", "the address to listen on")
	secret := flag.String("secret", "s3cret", "the signing secret")
	target := flag.String("target", "", "the app's address, for HTTP delivery")
	scopes := flag.String("scopes", "", "the bot token's scopes, as auth.test says them")
	flag.Parse()
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s\n", l.Addr())
	srv := &http.Server{
		Handler:           slacktest.New(slacktest.Config{SigningSecret: *secret, Target: *target, BotScopes: *scopes}),
		ReadHeaderTimeout: 10 * time.Second,
	}
	log.Fatal(srv.Serve(l))
}
