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
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		s := <-signals
		signal.Stop(signals) // so that a second signal ends the program at once
		cancel(signalExit(s))
	}()
	code, ok := standInUntil(ctx)
	if !ok {
		code = run(ctx, os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr})
	}
	os.Exit(code)
}

// signalExit is the exit code after a signal: 128 plus its number, as in shells.
func signalExit(s os.Signal) exitCode {
	number, _ := s.(syscall.Signal)
	return exitCode(128 + int(number))
}
