// Command cmd starts and ends a whole real Slurm on this machine by hand; see
// package slurmtest.
//
//	go run ./slurm/slurmtest/cmd up DIR     # prints the environment to use
//	go run ./slurm/slurmtest/cmd down DIR
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm/slurmtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "slurmtest:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var o slurmtest.Options
	flags := flag.NewFlagSet("slurmtest", flag.ContinueOnError)
	flags.BoolVar(&o.Enforce, "enforce", false, "make accounts, QOS and limits binding")
	flags.BoolVar(&o.Preempt, "preempt", false, "let the QOS urgent requeue jobs of others")
	flags.IntVar(&o.MinJobAge, "min-job-age", 0, "seconds that the controller remembers an ended job (300)")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: slurmtest [flags] up DIR | down DIR")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 2 {
		flags.Usage()
		return fmt.Errorf("two words are needed, up or down and a directory, not %d", flags.NArg())
	}
	verb, dir := flags.Arg(0), flags.Arg(1)
	switch verb {
	case "up":
		begin := time.Now()
		c, err := slurmtest.Up(ctx, dir, o)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "slurmtest: up after %.1f s; four idle nodes, partitions dev and prod, users alice and bob\n", time.Since(begin).Seconds())
		fmt.Printf("export PATH=%s:$PATH\nexport SLURM_CONF=%s\nexport SLURMTEST_WORK=%s\nexport SLURMTEST_REST=%s\n", c.Bin(), c.Conf(), c.Work, c.REST)
		return nil
	case "down":
		return slurmtest.Down(dir)
	}
	return fmt.Errorf("%q is neither up nor down", verb)
}
