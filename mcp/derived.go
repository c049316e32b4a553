package mcp

import "github.com/megatron-ops/megatron-ops/internal/ops"

// derivedTypes are the values that follow from a specification's arguments, under
// Megatron's names and grouped by JSON type.
var derivedTypes = map[string][]string{
	"integer": {
		"data_parallel_size", "expert_data_parallel_size", "expert_tensor_parallel_size", "ffn_hidden_size", "global_batch_size", "kv_channels",
		"micro_batch_size", "num_layers", "num_microbatches", "num_query_groups", "virtual_pipeline_model_parallel_size",
	},
	"boolean": {"overlap_grad_reduce", "overlap_p2p_comm", "overlap_param_gather", "sequence_parallel", "use_distributed_optimizer"},
	"string":  {"ckpt_format", "cuda_device_max_connections", "params_dtype", "recompute_granularity"},
}

// derivedSchema is the schema of plan's field derived. It allows these values and no
// others. A value is null if its argument was not given; the object is empty if the
// program is not Megatron's.
func derivedSchema() *ops.Schema {
	s := &ops.Schema{Type: "object", Closed: true}
	for _, kind := range []string{"integer", "boolean", "string"} {
		for _, name := range derivedTypes[kind] {
			s.Properties = append(s.Properties, ops.Property{Name: name, Schema: &ops.Schema{Type: kind, Nullable: true}})
		}
	}
	return s
}
