// Package megatron holds the arithmetic of a Megatron-LM run: the flag table, the
// parser of the command line, the parallel layout, the batch and the memory. It is
// pure: it uses no clock, files, network or cluster.
package megatron

// A Run is the input of one launch of Megatron-LM.
type Run struct {
	// Entry is the pretrain script: gpt, hybrid, t5 or bert; empty means gpt. Any
	// other word stands for a script of the user's own, whose unknown flags are not
	// errors.
	Entry string `json:"entry,omitempty"`
	// Argv is Megatron's command line after the script's name.
	Argv []string `json:"argv"`
	// WorldSize is the number of ranks, one for each GPU.
	WorldSize int `json:"world_size"`
	// Arch is the CUDA compute capability's major number: 8 Ampere, 9 Hopper, 10
	// and above Blackwell.
	Arch int `json:"arch"`
	// Env is the environment in which the ranks start; an absent variable is unset.
	Env map[string]string `json:"env,omitempty"`
	// Release is the Megatron-LM release that runs; zero means the newest.
	Release Release `json:"-"`
	// Image is the container image of the ranks, GPU the kind of GPU; empty where
	// unknown.
	Image, GPU string `json:"-"`
	// Extra are flags of a fork. The parser accepts them with any values and judges
	// neither.
	Extra []string `json:"-"`
}
