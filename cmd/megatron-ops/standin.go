package main

import (
	"context"
	"os"

	"github.com/megatron-ops/megatron-ops/internal/demo"
	"github.com/megatron-ops/megatron-ops/internal/ops/joblogs"
	"github.com/megatron-ops/megatron-ops/slurm/cluster"
	"github.com/megatron-ops/megatron-ops/slurm/cluster/local"
)

// Words that make this program act as another program. People never type them.
const (
	// demoLaunchWord and demoRankWord stand for torch.distributed.run and one of its
	// ranks.
	demoLaunchWord = "__demo-launch"
	demoRankWord   = "__demo-rank"
)

// standIn runs the program that this process stands in for, if any, with the system's
// own handling of signals.
func standIn() (code int, ok bool) {
	// The embedded back end's srun and related commands, and the supervisor of a job.
	if code, ok := local.Standin(os.Args); ok {
		return code, true
	}
	if len(os.Args) > 1 && os.Args[1] == cluster.AsUserWord {
		return cluster.AsUser(os.Args[2:], os.Stdin, os.Stdout, os.Stderr), true
	}
	return 0, false
}

// standInUntil is standIn for programs that end with ctx.
func standInUntil(ctx context.Context) (code int, ok bool) {
	// A task of a diagnosis that runs on a cluster.
	if code, ok := joblogs.Worker(ctx, os.Args, os.Stderr); ok {
		return code, true
	}
	if len(os.Args) < 2 {
		return 0, false
	}
	switch os.Args[1] {
	case demoLaunchWord:
		self, err := os.Executable()
		if err != nil {
			self = os.Args[0]
		}
		return demo.Launch(ctx, os.Args[2:], []string{self, demoRankWord}, os.Stdout, os.Stderr), true
	case demoRankWord:
		return demo.Rank(os.Args[2:], os.Stdout, os.Stderr), true
	}
	return 0, false
}
