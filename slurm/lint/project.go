package lint

import (
	"path"
	"slices"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/slurm/script"
)

var (
	// otherProject matches forks that have scripts of the same names with other flags.
	otherProject = lazy.New(`(?i)deepspeed|gpt-neox|mindspeed|pai-megatron|bigscience|bigcode|epfllm|modellink`)
	// projectFolder finds the last folder of a path that names Megatron-LM (the first group) or one
	// of NVIDIA's projects around it, which hold a copy of it and have programs of their own.
	projectFolder = lazy.New(`(?i)^.*(?:(megatron[-_]?lm)|(?:^|[^a-z])nemo(?:[^a-z]|$)|megatron[-_.]bridge)`)
	// otherFlag matches flags that only the parser of DeepSpeed or Hydra has.
	otherFlag = lazy.New(`^--(deepspeed|config-(name|path|dir)(=|$))`)
	// override matches a setting as Hydra and OmegaConf read it, such as +model.seed=1.
	override = lazy.New(`^(\+\+?|~)?[A-Za-z_]\w*([./@]\w+)+=`)
)

// whereIs returns the path of the program, as far as the script shows it.
func whereIs(s *script.Start) string {
	if p := s.Program.Text(); path.IsAbs(p) {
		return p
	}
	return s.Env.Dir.String() + "/" + s.Program.Text()
}

// aroundMegatron reports whether the program belongs to NeMo or Megatron-Bridge, which configure
// Megatron Core in their own way and take their ranks from Slurm.
func aroundMegatron(s *script.Start) bool {
	found := projectFolder.FindStringSubmatch(whereIs(s))
	return found != nil && found[1] == ""
}

// ofOtherProject reports whether the program has a parser of its own: that of another project, such
// as Megatron-DeepSpeed or NeMo, or that of Hydra.
func ofOtherProject(s *script.Start) bool {
	return s.Launcher == script.DeepSpeed || otherProject.MatchString(whereIs(s)) || aroundMegatron(s) ||
		slices.ContainsFunc(script.Texts(s.ProgramArgs), otherFlag.MatchString)
}

// ofMegatron reports whether the program is one of Megatron-LM's trainings.
func ofMegatron(s *script.Start) bool { return pretrains(programName(s)) && !ofOtherProject(s) }

// overrides reports whether a is a setting that stands by itself after the flags. Megatron's parser
// takes no words but flags and their values.
func (t *megatronStart) overrides(a script.Arg) bool {
	if len(a.Value) == 0 || a.Value[0].Ref != nil || !override.MatchString(a.Value[0].Text) {
		return false
	}
	if len(t.flags) == 0 {
		return true
	}
	last := t.flags[len(t.flags)-1]
	if last.ok {
		return !last.takesMore()
	}
	return last.hidden || len(last.values) > 0
}
