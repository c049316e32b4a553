package slurmtest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/slurm"
)

// number reads a number in a request: bare, or one that may be unset, which only API
// versions since v0.0.39 accept.
func number(v any) (int64, bool) {
	if o, ok := v.(object); ok && o["set"] == true {
		v = o["number"]
	}
	n, ok := v.(float64)
	return int64(n), ok
}

func minutes(v any) time.Duration {
	n, _ := number(v)
	return time.Duration(n) * time.Minute
}

// mailTypes are slurmrestd's names of mail types since v0.0.39 (data_parser's
// JOB_MAIL_FLAGS).
var mailTypes = []string{
	"BEGIN", "END", "FAIL", "REQUEUE", "TIME=100%", "TIME=90%", "TIME=80%", "TIME=50%", "STAGE_OUT", "ARRAY_TASKS", "INVALID_DEPENDENCY",
}

// textOptions maps the fields with an option's text to the option.
var textOptions = map[string]string{
	"name": "job-name", "partition": "partition", "account": "account", "qos": "qos", "comment": "comment",
	"standard_output": "output", "standard_error": "error", "standard_input": "input", "dependency": "dependency", "array": "array",
	"constraints": "constraint", "reservation": "reservation", "mail_user": "mail-user",
}

// submit accepts a job. slurmrestd ignores the script's #SBATCH lines, so every option
// must come as a field.
func (r *REST) submit(w http.ResponseWriter, q apiRequest) {
	job, _ := q.body["job"].(object)
	script, _ := q.body["script"].(string)
	s := slurm.Submission{Script: strings.ReplaceAll(script, "\n#SBATCH", "\n# SBATCH")}
	s.Dir, _ = job["current_working_directory"].(string)
	warnings := []any{}
	env, problem := r.environment(q, job)
	if problem != "" {
		r.refuse(w, q, r.nearest(q, "submit-no-environment.json"), problem)
		return
	}
	s.Env = env
	named := slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, "SLURM_JOB_NAME=") })
	for name, v := range job {
		arg, problem, known := r.option(q, name, v)
		switch {
		case problem != "":
			r.refuse(w, q, "submit-bad-partition.json", problem)
			return
		case !known:
			warnings = append(warnings, object{"description": fmt.Sprintf("Ignoring unknown field %q", name)})
		case arg != "":
			if r.release == "23.11" && !named && strings.Contains(arg, "put=") {
				arg = strings.ReplaceAll(arg, "%x", "(null)")
			}
			s.Args = append(s.Args, arg)
		}
	}
	id, err := r.run.Submit(q.Context(), s)
	if err != nil {
		said := err.Error()
		if e := slurm.FromStderr("", said); e.Kind == slurm.Rejected {
			said = strings.TrimPrefix(said, "submit: ")
		}
		r.refuse(w, q, "submit-bad-partition.json", said)
		return
	}
	n, err := strconv.Atoi(string(id))
	if err != nil {
		r.t.Error(err)
	}
	answer(w, http.StatusOK, object{"job_id": n, "step_id": "batch", "errors": []any{}, "warnings": warnings})
}

// environment reads the job's environment: an object in v0.0.38, a list since v0.0.39.
func (r *REST) environment(q apiRequest, job object) (env []string, problem string) {
	switch given := job["environment"].(type) {
	case object:
		for name, v := range given {
			env = append(env, fmt.Sprintf("%s=%v", name, v))
		}
		if q.api > 38 {
			return nil, "Unable to convert Data type"
		}
	case []any:
		for _, e := range given {
			env = append(env, fmt.Sprint(e))
		}
		if q.api == 38 {
			return nil, "Unable to convert Data type"
		}
	}
	if len(env) == 0 {
		return nil, `I/O error writing script/environment to file`
	}
	return env, ""
}

// option returns the sbatch option for a field. arg is "" for a field without an
// option, or one that is read elsewhere.
func (r *REST) option(q apiRequest, name string, v any) (arg, problem string, known bool) {
	const mistyped = "Unable to convert Data type"
	text, isText := v.(string)
	n, isNumber := number(v)
	_, wrapped := v.(object)
	count := func(option string) (string, string, bool) {
		if !isNumber || q.api == 38 && wrapped {
			return "", mistyped, true
		}
		return fmt.Sprintf("--%s=%d", option, n), "", true
	}
	if option, ok := textOptions[name]; ok {
		if !isText {
			return "", mistyped, true
		}
		return "--" + option + "=" + text, "", true
	}
	switch name {
	case "current_working_directory", "environment":
		return "", "", true
	case "hold":
		if v == true {
			return "--hold", "", true
		}
		return "", "", true
	case "requeue":
		if v == true {
			return "--requeue", "", true
		}
		return "--no-requeue", "", true
	case "tasks":
		return count("ntasks")
	case "tasks_per_node":
		return count("ntasks-per-node")
	case "cpus_per_task":
		return count("cpus-per-task")
	case "time_limit":
		return count("time")
	case "nodes":
		if list, ok := v.([]any); ok && q.api == 38 && len(list) == 2 {
			return fmt.Sprintf("--nodes=%v-%v", list[0], list[1]), "", true
		} else if !isText || q.api == 38 {
			return "", mistyped, true
		}
		return "--nodes=" + text, "", true
	case "begin_time":
		switch {
		case q.api == 38 && isText:
			n, isNumber = 0, true
			_, _ = fmt.Sscanf(text, "uts%d", &n)
		case q.api == 39 && wrapped:
			return "", mistyped, true // this version wants a UINT64
		}
		if !isNumber {
			return "", mistyped, true
		}
		return "--begin=" + time.Unix(n, 0).Format("2006-01-02T15:04:05"), "", true
	case "gpus_per_node":
		return "--gpus-per-node=" + text, "", q.api == 38
	case "tres_per_node":
		return "--gpus-per-node=" + strings.TrimPrefix(text, "gres/gpu:"), "", q.api > 38
	case "mail_type":
		list, isList := v.([]any)
		if q.api == 38 {
			return "", "", true
		}
		for _, m := range list {
			if name, _ := m.(string); !slices.Contains(mailTypes, name) {
				return "", "Unknown flag", true
			}
		}
		if !isList {
			return "", mistyped, true
		}
		return "", "", true
	}
	return "", "", false
}
