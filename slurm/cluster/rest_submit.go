package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// A description is a job's description for slurmrestd. slurmrestd does not read #SBATCH
// lines, so each option becomes a field.
type description struct {
	version int
	fields  map[string]any
	nodes   int
	perNode int
	tasks   int
}

func (d *description) set(name string, v any) { d.fields[name] = v }

// setRenamed sets a field that has another name or form since v0.0.39: to old before, to now since.
func (d *description) setRenamed(oldName string, old any, nowName string, now any) {
	if d.version < 39 {
		d.set(oldName, old)
	} else {
		d.set(nowName, now)
	}
}

// number returns n in the API version's form for a number that may be unset.
func (d *description) number(n int64) any {
	if d.version < 39 {
		return n
	}
	return map[string]any{"set": true, "infinite": false, "number": n}
}

// restFields sets the fields of a description for an sbatch option.
var restFields = map[string]func(d *description, v string) error{
	"job-name":    textField("name"),
	"partition":   textField("partition"),
	"account":     textField("account"),
	"qos":         textField("qos"),
	"comment":     textField("comment"),
	"output":      textField("standard_output"),
	"error":       textField("standard_error"),
	"input":       textField("standard_input"),
	"chdir":       textField("current_working_directory"),
	"dependency":  textField("dependency"),
	"array":       textField("array"),
	"constraint":  textField("constraints"),
	"reservation": textField("reservation"),
	"licenses":    textField("licenses"),
	"mail-user":   textField("mail_user"),
	"open-mode": func(d *description, v string) error {
		d.setRenamed("open_mode", v, "open_mode", []string{strings.ToUpper(v)})
		return nil
	},
	"wckey":      textField("wckey"),
	"hold":       func(d *description, _ string) error { d.set("hold", true); return nil },
	"requeue":    func(d *description, _ string) error { d.set("requeue", true); return nil },
	"no-requeue": func(d *description, _ string) error { d.set("requeue", false); return nil },
	"parsable":   func(*description, string) error { return nil },
	"export":     func(*description, string) error { return nil }, // the description contains the whole environment
	"get-user-env": func(d *description, _ string) error {
		if d.version > 38 {
			return slurm.Sayf("--get-user-env: slurmrestd ignores it from v0.0.39 on; name what the job needs in its environment")
		}
		d.set("get_user_environment", true)
		return nil
	},
	"nodes": func(d *description, v string) error {
		low, high, isRange := strings.Cut(v, "-")
		lo, err1 := strconv.Atoi(low)
		hi := lo
		var err2 error
		if isRange {
			hi, err2 = strconv.Atoi(high)
		}
		if err1 != nil || err2 != nil || lo < 1 {
			return slurm.Sayf("%q is not a valid node count", v)
		}
		d.nodes = lo
		d.setRenamed("nodes", []int{lo, hi}, "nodes", v)
		return nil
	},
	"ntasks":          countField(func(d *description, n int) { d.tasks = n }),
	"ntasks-per-node": countField(func(d *description, n int) { d.perNode = n; d.set("tasks_per_node", n) }),
	"cpus-per-task":   countField(func(d *description, n int) { d.set("cpus_per_task", n) }),
	"gpus-per-node":   gpuField("gpus_per_node", "tres_per_node"),
	"gpus":            gpuField("gpus", "tres_per_job"),
	"gpus-per-task":   gpuField("gpus_per_task", "tres_per_task"),
	"gres": func(d *description, v string) error {
		d.setRenamed("gres", v, "tres_per_node", "gres/"+strings.TrimPrefix(v, "gres:"))
		return nil
	},
	"time": func(d *description, v string) error {
		span, ok := slurm.ParseDuration(v)
		if !ok {
			return slurm.Sayf("Invalid --time specification")
		}
		d.set("time_limit", d.number(int64(math.Ceil(span.Minutes()))))
		return nil
	},
	"begin": func(d *description, v string) error {
		t, err := slurm.ParseBegin(v, time.Now())
		if err != nil {
			return err
		}
		if d.version < 39 {
			d.set("begin_time", timestamp(t))
		} else if d.version < 40 {
			d.set("begin_time", t.Unix())
		} else {
			d.set("begin_time", d.number(t.Unix()))
		}
		return nil
	},
	"mem": func(d *description, v string) error {
		mb, ok := slurm.ParseMemory(v)
		if !ok {
			return slurm.Sayf("invalid memory constraint: %s", v)
		}
		d.set("memory_per_node", d.number(mb))
		return nil
	},
	"exclusive": func(d *description, v string) error {
		d.setRenamed("exclusive", cmp.Or(v, "true"), "shared", []string{cmp.Or(v, "none")})
		return nil
	},
	"nodelist": nodesField("nodelist", "required_nodes"),
	"exclude":  nodesField("exclude", "excluded_nodes"),
	"mail-type": func(d *description, v string) error {
		if d.version < 39 {
			d.set("mail_type", v)
			return nil
		}
		kinds, err := mailFlags(v)
		if err == nil && len(kinds) > 0 {
			d.set("mail_type", kinds)
		}
		return err
	},
	"signal": func(d *description, v string) error {
		ahead, ok := slurm.ParseSignal(v)
		if !ok || ahead.Reservation {
			return slurm.Sayf("Invalid --signal specification")
		}
		number, _ := slurm.SignalNumber(ahead.Name)
		timed := strings.Contains(v, "@") // slurmrestd is sent no default
		if d.version < 39 {
			said := strconv.Itoa(number)
			if ahead.BatchOnly {
				said = "B:" + said
			}
			if timed {
				said += fmt.Sprintf("@%d", int(ahead.Before.Seconds()))
			}
			d.set("signal", said)
			return nil
		}
		d.set("kill_warning_signal", strconv.Itoa(number))
		if timed {
			d.set("kill_warning_delay", d.number(int64(ahead.Before.Seconds())))
		}
		if ahead.BatchOnly {
			d.set("kill_warning_flags", []string{"BATCH_JOB"})
		}
		return nil
	},
}

// mailWords maps the mail types of sbatch to slurmrestd's names since v0.0.39, which
// have no ALL.
var mailWords = map[string][]string{
	"NONE": nil, "BEGIN": {"BEGIN"}, "END": {"END"}, "FAIL": {"FAIL"}, "REQUEUE": {"REQUEUE"}, "STAGE_OUT": {"STAGE_OUT"},
	"ALL":            {"BEGIN", "END", "FAIL", "REQUEUE", "STAGE_OUT", "INVALID_DEPENDENCY"},
	"INVALID_DEPEND": {"INVALID_DEPENDENCY"}, "ARRAY_TASKS": {"ARRAY_TASKS"},
	"TIME_LIMIT": {"TIME=100%"}, "TIME_LIMIT_90": {"TIME=90%"}, "TIME_LIMIT_80": {"TIME=80%"}, "TIME_LIMIT_50": {"TIME=50%"},
}

// mailFlags translates a list of sbatch's mail types.
func mailFlags(list string) (flags []string, err error) {
	for word := range strings.SplitSeq(list, ",") {
		names, known := mailWords[strings.ToUpper(strings.TrimSpace(word))]
		if !known {
			return nil, slurm.Sayf("Invalid --mail-type specification")
		}
		for _, n := range names {
			if !slices.Contains(flags, n) {
				flags = append(flags, n)
			}
		}
	}
	return flags, nil
}

// textField copies the option's value into field.
func textField(field string) func(*description, string) error {
	return func(d *description, v string) error { d.set(field, v); return nil }
}

// countField passes the option's value to set where it is a whole number from 1 on.
func countField(set func(*description, int)) func(*description, string) error {
	return func(d *description, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			return slurm.Sayf("invalid number %q", v)
		}
		set(d, n)
		return nil
	}
}

// gpuField sets a count of GPUs, in oldField before v0.0.39 and in newField since.
func gpuField(oldField, newField string) func(*description, string) error {
	return func(d *description, v string) error {
		d.setRenamed(oldField, v, newField, "gres/gpu:"+v)
		return nil
	}
}

// nodesField sets a hostlist, in oldField before v0.0.39 and as a list in newField since.
func nodesField(oldField, newField string) func(*description, string) error {
	return func(d *description, v string) error {
		nodes, err := hostlist.Expand(v)
		if err == nil {
			d.setRenamed(oldField, v, newField, nodes)
		}
		return err
	}
}

// describe returns the body of a submission request: one job, or the components of a
// heterogeneous job.
func (r *REST) describe(s slurm.Submission, version int) (map[string]any, error) {
	if !strings.HasPrefix(s.Script, "#!") {
		return nil, slurm.Sayf("This does not look like a batch script: the first line must start with #!")
	}
	components, err := slurm.ReadComponents(s.Script)
	if err != nil {
		return nil, err
	}
	args, err := slurm.ReadOptions(s.Args)
	if err != nil {
		return nil, err
	}
	name := cmp.Or(s.Name, "sbatch") // sbatch's name for a script from standard input
	components[0] = append(components[0], args...)
	job, err := r.component(s, version, name, components[0])
	if err != nil || len(components) == 1 {
		return map[string]any{"script": s.Script, "job": job}, err
	}
	jobs := []map[string]any{job}
	s.Token = "" // only the first component carries the token, and it suffices to find the job
	for _, options := range components[1:] {
		one, err := r.component(s, version, components[0].Value("job-name"), options)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, one)
	}
	return map[string]any{"script": s.Script, "jobs": jobs}, nil
}

// component returns the description of a job, or of one component of a heterogeneous
// job.
func (r *REST) component(s slurm.Submission, version int, name string, options slurm.Options) (map[string]any, error) {
	d := description{version: version, fields: map[string]any{"current_working_directory": s.Dir}}
	if name != "" {
		d.set("name", name)
	}
	for _, o := range options {
		setField, known := restFields[o.Name]
		if !known {
			return nil, lang.Text{EN: "unrecognized option '--%s': slurmrestd has no field for it", ZH: "选项 '--%s' 无法通过 slurmrestd 表达"}.Err(o.Name)
		}
		if err := setField(&d, o.Value); err != nil {
			return nil, err
		}
	}
	// sbatch computes the number of tasks. slurmrestd 22.05 assumes one task, and with
	// it one node, where none is given.
	if d.tasks == 0 && d.nodes > 0 {
		d.tasks = d.nodes * max(d.perNode, 1)
	}
	if d.tasks > 0 {
		d.set("tasks", d.tasks)
	}
	if s.Token != "" {
		comment, _ := d.fields["comment"].(string)
		d.set("comment", slurm.TagComment(comment, s.Token))
	}
	env := s.Env
	if env == nil {
		env = []string{"PATH=/usr/local/bin:/usr/bin:/bin"} // slurmrestd has no environment of the user
	}
	env = WithFolder(JobEnviron(env), r.Bin)
	// Without this variable 23.11 writes "(null)" for %x in the name of an output file.
	if name, named := d.fields["name"].(string); named {
		env = withDefaults(env, []string{"SLURM_JOB_NAME=" + name}, "SLURM_JOB_NAME")
	}
	if version < 39 {
		object := map[string]string{}
		for _, e := range env {
			name, value, _ := strings.Cut(e, "=")
			object[name] = value
		}
		d.set("environment", object)
	} else {
		d.set("environment", env)
	}
	return d.fields, nil
}

// Submit submits the script; see CLI.Submit. It creates the log directory on this
// machine, which must share the file system with the nodes.
func (r *REST) Submit(ctx context.Context, s slurm.Submission) (slurm.JobID, error) {
	version, err := r.api(ctx)
	if err != nil {
		return "", withOp("submit", err)
	}
	job, err := r.describe(s, version)
	if err != nil {
		return "", slurm.Refused("submit", err)
	}
	if s.LogDir != "" {
		if err := os.MkdirAll(Absolute(s.LogDir, s.Dir), 0o777); err != nil {
			return "", &slurm.Error{Op: "submit", Kind: slurm.Rejected, Msg: lang.Text{EN: "log directory: %s", ZH: "日志目录：%s"}.With(err), Fix: lang.Text{
				EN: "slurmrestd cannot create a directory: create it on the cluster, or use a shared file system",
				ZH: "通过 slurmrestd 无法创建目录：请在集群上创建，或使用共享文件系统",
			}}
		}
	}
	a, err := r.call(ctx, "submit", http.MethodPost, "job/submit", job)
	if err != nil {
		if errors.Is(err, slurm.ErrUnreachable) {
			e, _ := errors.AsType[*slurm.Error](err)
			return "", &slurm.Error{Op: "submit", Kind: slurm.Unknown, Msg: e.Msg, Fix: e.Fix}
		}
		return "", err
	}
	if a.submitted() <= 0 {
		return "", &slurm.Error{Op: "submit", Kind: slurm.Unknown, Msg: lang.Text{EN: "slurmrestd answered without a job id", ZH: "slurmrestd 的返回中没有作业号"}}
	}
	return slurm.JobID(strconv.FormatInt(a.submitted(), 10)), nil
}

// change sends new values of a job's fields.
func (r *REST) change(ctx context.Context, op string, id slurm.JobID, fields map[string]any) error {
	if !slurm.IsJobID(string(id)) {
		return slurm.JobNotFound(id)
	}
	_, err := r.call(ctx, op+" "+string(id), http.MethodPost, "job/"+string(id), fields)
	return err
}

// Hold keeps a pending job from starting.
func (r *REST) Hold(ctx context.Context, id slurm.JobID) error {
	return r.change(ctx, "hold", id, map[string]any{"hold": true})
}

// Release lets a held job start.
func (r *REST) Release(ctx context.Context, id slurm.JobID) error {
	return r.change(ctx, "release", id, map[string]any{"hold": false})
}

// Update changes a job that has not ended.
func (r *REST) Update(ctx context.Context, id slurm.JobID, u slurm.Update) error {
	version, err := r.api(ctx)
	if err != nil {
		return withOp("update", err)
	}
	d := description{version: version, fields: map[string]any{}}
	if u.NumNodes > 0 {
		if err := restFields["nodes"](&d, strconv.Itoa(u.NumNodes)); err != nil {
			return err
		}
	}
	if u.Partition != "" {
		d.set("partition", u.Partition)
	}
	if u.TimeLimit > 0 {
		d.set("time_limit", d.number(int64(math.Ceil(u.TimeLimit.Minutes()))))
	}
	if u.QOS != "" {
		d.set("qos", u.QOS)
	}
	if len(u.Exclude) > 0 {
		if err := restFields["exclude"](&d, hostlist.Compress(u.Exclude)); err != nil {
			return err
		}
	}
	return r.change(ctx, "update", id, d.fields)
}
