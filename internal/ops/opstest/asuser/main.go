// Asuser is `megatron-ops as-user` and nothing else: what tests let sudo start,
// built in a moment.
package main

import (
	"os"

	"github.com/megatron-ops/megatron-ops/slurm/cluster"
)

func main() { os.Exit(cluster.AsUser(os.Args[2:], os.Stdin, os.Stdout, os.Stderr)) }
