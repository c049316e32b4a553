package lint

import "github.com/megatron-ops/megatron-ops/slurm/script"

var containerRules []Rule

func covered(*script.Container, script.Value) bool { return false }
