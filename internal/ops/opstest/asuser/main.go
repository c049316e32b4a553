// Asuser contains only `megatron-ops as-user`, so that tests build it quickly. They
// start it with sudo.
package main

import (
	"os"

	"github.com/megatron-ops/megatron-ops/slurm/cluster"
)

func main() { os.Exit(cluster.AsUser(os.Args[2:], os.Stdin, os.Stdout, os.Stderr)) }
