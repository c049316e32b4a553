package ops

import (
	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
)

// FileName matches a path or a log's name, also with the % patterns of Slurm.
var FileName = lazy.New(`[/%]|\.(log|out|err|txt)(\.(gz|zst))?$`)

// OutputError returns the error about an unknown output format. Where form looks like a
// file, the fix explains the difference to sbatch's --output.
func OutputError(form string) *Error {
	e := InputError("output", lang.Text{EN: "output %q is not known", ZH: "不支持输出格式 %q"}.With(form), lang.Text{EN: "--output text, json or yaml", ZH: "--output text、json 或 yaml"})
	if FileName.MatchString(form) {
		e.Fix = lang.Text{
			EN: "--output is the form of this answer here: text, json or yaml; a job's logs are NAME-JOBID.out and .err in the folder that --log-dir, or log_dir in its specification, names",
			ZH: "--output 在这里是回答的格式：text、json 或 yaml；作业日志是 --log-dir（规格中的 log_dir）所指目录下的 NAME-JOBID.out 与 .err",
		}
	}
	return e
}
