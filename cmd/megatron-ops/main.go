// Command megatron-ops plans, renders, submits, watches and diagnoses
// Megatron-LM jobs on Slurm, from the shell, from Slack and for coding agents.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/quickstart"
)

func main() {
	quickstart.OverIn(time.Second)
	if code, ok := standIn(); ok {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	code := run(ctx, os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr})
	stop()
	os.Exit(code)
}
