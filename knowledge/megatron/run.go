// Package megatron is the arithmetic of a Megatron-LM run: its flag table, the
// reading of its command line, its parallel layout, batch and memory. It is
// pure: no clock, no files, no network, no cluster.
package megatron

// A Run is one launch as Megatron-LM's own code would see it.
type Run struct {
	// Entry says which of Megatron's pretrain scripts runs: gpt, hybrid, t5 or
	// bert; empty means gpt. Any other word is a script of the user's own, whose
	// unknown flags are not errors.
	Entry string `json:"entry,omitempty"`
	// Argv is Megatron's command line after the script's name.
	Argv []string `json:"argv"`
	// WorldSize is the number of ranks, one for each GPU.
	WorldSize int `json:"world_size"`
	// Arch is the CUDA compute capability's major number: 8 Ampere, 9 Hopper, 10
	// and above Blackwell.
	Arch int `json:"arch"`
	// Env is the environment that the ranks start with; a variable that is absent
	// is unset.
	Env map[string]string `json:"env,omitempty"`
	// Release is the Megatron-LM release that runs; zero means the newest.
	Release Release `json:"-"`
	// Image is the container image that the ranks run in and GPU the kind of GPU;
	// empty where nobody says.
	Image, GPU string `json:"-"`
	// Extra are flags of a fork, which are not judged; a value may follow each.
	Extra []string `json:"-"`
}
