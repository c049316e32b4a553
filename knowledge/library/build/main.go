// Command build writes the embedded files of package library. go generate runs it in
// that package's folder.
package main

import (
	"fmt"
	"os"

	"github.com/megatron-ops/megatron-ops/knowledge/library"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}

func run() error {
	c, x, err := library.Build(os.DirFS("../cards/data"))
	if err != nil {
		return err
	}
	if err := os.WriteFile("cards.bin", c, 0o644); err != nil {
		return err
	}
	return os.WriteFile("index.bin", x, 0o644)
}
