package lint

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/rules"
	"github.com/megatron-ops/megatron-ops/slurm/script"
)

// environmentRules are about the environment of a training.
var environmentRules = []Rule{
	{
		ID: "uv-sync-in-job", Severity: rules.Warning, check: uvSync,
		Why: lang.Text{
			EN: "packages are installed inside the job: minutes of GPU time, and several nodes race on one environment",
			ZH: "在作业里安装依赖：白白占用 GPU 时间，多个节点还会同时改写同一个环境",
		},
		Fix: lang.Text{EN: "do it once before sbatch", ZH: "在提交作业之前装好一次"},
	},
	{
		ID: "conda-activate", Severity: rules.Error, check: condaActivate,
		Why: lang.Text{
			EN: `conda activate needs conda's shell function, which this shell does not have: "Run 'conda init' before", and the wrong Python runs`,
			ZH: "conda activate 需要 conda 的 shell 函数，这个 shell 里没有：会提示 “Run 'conda init' before”，并用错 Python",
		},
		Fix: lang.Text{
			EN: `source "$(conda info --base)/etc/profile.d/conda.sh" before it`,
			ZH: `之前先 source "$(conda info --base)/etc/profile.d/conda.sh"`,
		},
	},
	{
		ID: "secrets-in-script", Severity: rules.Error, check: secrets,
		Why: lang.Text{EN: "the script contains a secret as plain text: others can read it in scontrol, in git and in logs", ZH: "密钥明文写在脚本里：别人可以通过 scontrol、git 或日志读到"},
		Fix: lang.Text{
			EN: `read it from a file that only you can read: export NAME="$(cat ~/.secrets/name)", and revoke this one`,
			ZH: `从权限 600 的文件读取：export NAME="$(cat ~/.secrets/name)"，并作废当前这个密钥`,
		},
	},
	{
		ID: "no-such-timeout", Severity: rules.Warning, check: noSuchTimeout,
		Why: lang.Text{EN: "this variable does not set a timeout: no timeout gets longer", ZH: "这个变量并不设置超时：不会有任何超时变长"},
		Fix: lang.Text{
			EN: "--distributed-timeout-minutes of Megatron, or timeout= of torch.distributed.init_process_group",
			ZH: "改用 Megatron 的 --distributed-timeout-minutes，或 torch.distributed.init_process_group 的 timeout=",
		},
	},
	{
		ID: "debug-left-on", Severity: rules.Warning, check: debugLeftOn,
		Why: lang.Text{EN: "a debugging switch is on in a real training: every kernel or collective waits", ZH: "正式训练里还开着调试开关：每个 kernel 或集合通信都会变成同步等待"},
		Fix: lang.Text{EN: "remove it", ZH: "删掉它"},
	},
}

// changesNothing matches options with which an installing command changes nothing.
var changesNothing = lazy.New(`--(?:dry-run|help|check)\b`)

// installs matches commands that install packages.
var installs = lazy.New(`^(?:uv (?:sync|add|pip (?:install|sync))|(?:python[\d.]* -m )?pip[\d.]* (?:\S+ )*install` +
	`|(?:conda|mamba|micromamba) (?:install|create|update|env (?:create|update))|(?:poetry|pipenv|pdm|pixi) (?:install|sync)` +
	`|(?:apt|apt-get|yum|dnf) (?:\S+ )*install)(?: |$)`)

func uvSync(c *checker) {
	if len(c.starts) == 0 || !c.job.Batch() && len(c.job.Steps) == 0 {
		return
	}
	for _, x := range c.job.Commands {
		if x.Trap || len(x.Args) == 0 || !c.job.Batch() && x.Step == nil {
			continue
		}
		command := strings.Join(append([]string{x.Name()}, script.Texts(x.Args[1:])...), " ")
		if installs.MatchString(command) && !changesNothing.MatchString(command) {
			c.report(x.Line, command)
			return
		}
	}
}

func condaActivate(c *checker) {
	for _, x := range c.job.Commands {
		n := x.Name()
		if n != "conda" && n != "mamba" && n != "micromamba" || len(x.Args) < 2 || x.Args[1].Text() != "activate" || x.Container != nil || x.Trap {
			continue
		}
		if !c.job.Batch() && x.Shell.Kind == script.Batch {
			continue // the user may source the script in a shell that has conda's function
		}
		if x.Shell.Login || x.Sourced || c.hasConda(x) {
			continue
		}
		c.report(x.Line, n+" activate")
	}
}

var condaHook = lazy.New(`conda\.sh|mamba\.sh|\.bashrc|\.bash_profile|\.profile|\.zshrc|shell\.bash|shell\.posix|shell hook|hook\b|` +
	`/bin/activate|conda_init|miniconda|anaconda|miniforge|mambaforge`)

// hasConda reports whether a command before x, in the same shell, defines conda's shell
// function.
func (c *checker) hasConda(x *script.Command) bool {
	return c.commandBefore(x.Seq, func(y *script.Command) bool {
		if !sameShell(y, x) {
			return false
		}
		t := strings.Join(script.Texts(y.Args), " ")
		switch y.Name() {
		case "source", ".", "eval":
			return condaHook.MatchString(t)
		case "module", "ml":
			return regexp.MustCompile(`(?i)conda|miniforge|mamba|python|pytorch`).MatchString(t)
		}
		return false
	})
}

var (
	secretName = lazy.New(`(?i)(^|_)(token|api_?key|secret|passwd|password|pwd|access_key|secret_key|private_key|auth_?key|credentials?|` +
		`apikey|pat)(_id)?$|(?i)(wandb|hf|openai|aws|github|gitlab|swanlab|comet|neptune|mlflow)\w*(key|token|password)$`)
	// secretForms matches text that is a secret in any context.
	secretForms = lazy.New(`\b(hf_[A-Za-z0-9]{24,}|sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{30,}|glpat-[\w-]{16,}|` +
		`xox[abpr]-[\w-]{10,}|AKIA[0-9A-Z]{16}|AIza[\w-]{30,}|eyJ[\w-]{16,}\.eyJ[\w-]{10,}\.[\w-]+|local-[0-9a-f]{40}|` +
		`[Bb]earer\s+[A-Za-z0-9._-]{20,})`)
	userInURL   = lazy.New(`\w+://[^\s/:@"'$<>{}]+:([^\s/@"'$<>{}]{4,})@`)
	placeholder = lazy.New(`(?i)^$|<|>|x{4,}|\*{3,}|\.{3}|your|change_?me|replace|placeholder|\bexample\b|dummy|todo|insert|fill|` +
		`secret_?here|_here$|token_?here|^(none|null|true|false|offline|disabled|online|test|password|token|secret|key)$|` +
		`my_?(token|key|secret)|0{8,}|^[a-z_-]*0?1234567\d*$|在此|你的|填写|替换`)
	// tokenNames matches names of a tokenizer's tokens, which are not secrets.
	tokenNames = lazy.New(`(?i)(^|_)(bos|eos|pad|unk|cls|mask|sep|special|class|image|video|stop|end|start|eod|vision|max|num|min|new|per|sample|begin)_?token`)
	// variableName matches values that are names of variables.
	variableName = lazy.New(`^[A-Z][A-Z0-9]*(_[A-Z0-9]+)+(=[A-Z][A-Z0-9_]*)?$`)
)

func secrets(c *checker) {
	if c.job.Inner {
		return
	}
	for i, l := range c.job.Script.Lines {
		if m := secretForms.FindString(l); m != "" && !placeholder.MatchString(m) {
			c.report(i+1, m[:min(4, len(m))]+"…")
		} else if m := userInURL.FindStringSubmatch(l); m != nil && !placeholder.MatchString(m[1]) {
			c.report(i+1, "://…:…@")
		}
	}
	check := func(name, val string, line int, _ []script.Arm) {
		name = strings.ReplaceAll(strings.TrimLeft(name, "-"), "-", "_")
		if secretName.MatchString(name) && !strings.Contains(name, " ") && secretValue(name, val) {
			c.report(line, name)
		}
	}
	c.eachSetting(check)
	if o, has := c.job.Options.Get("export"); has {
		for kv := range strings.SplitSeq(o.Text(), ",") {
			name, val, _ := strings.Cut(kv, "=")
			check(name, val, o.Line, nil)
		}
	}
	for _, x := range c.job.Commands {
		t := script.Texts(x.Args)
		for i, a := range t {
			if strings.HasPrefix(a, "--") {
				check(a, argAt(t, i+1), x.Args[i].Line, nil)
			}
		}
		if argAt(t, 0) == "sshpass" && argAt(t, 1) == "-p" && secretValue("password", argAt(t, 2)) {
			c.report(x.Line, "sshpass -p")
		}
		if argAt(t, 1) == "login" || argAt(t, 2) == "login" {
			for i, a := range t[2:] {
				if hexKey.MatchString(a) || (argAt(t, i+1) == "-p" || argAt(t, i+1) == "--password") && secretValue("password", a) {
					c.report(x.Args[i+2].Line, t[0]+" login")
				}
			}
		}
	}
}

var hexKey = lazy.New(`^[0-9a-f]{40}$`)

func argAt(t []string, i int) string {
	if i < len(t) {
		return t[i]
	}
	return ""
}

// secretValue reports whether val, as the value of name, is probably a real secret.
func secretValue(name, val string) bool {
	val = strings.Trim(val, `"'`)
	lower := strings.ToLower(name)
	switch _, err := strconv.Atoi(val); {
	case strings.HasPrefix(val, "-"), tokenNames.MatchString(name), variableName.MatchString(val), placeholder.MatchString(val), strings.Contains(val, "$"),
		strings.ContainsAny(val, "/` ") && !strings.Contains(lower, "secret"):
		return false
	case strings.Contains(lower, "passw"), strings.HasSuffix(lower, "pwd"):
		return len(val) >= 4
	case strings.HasPrefix(val, "/"), strings.HasPrefix(val, "~"), strings.HasSuffix(lower, "tokens"), err == nil && len(val) < 12:
		return false
	}
	return len(val) >= 20 || len(val) >= 8 && strings.ContainsAny(val, "0123456789")
}

var (
	fakeTimeout  = lazy.New(`^(TORCH_)?NCCL_TIMEOUT(_\w+)?$`)
	timeoutWords = lazy.New(`(?i)time-?\s?out|超时|longer|wait|等待|延长`)
)

func noSuchTimeout(c *checker) {
	c.eachSetting(func(name, val string, line int, _ []script.Arm) {
		n, _ := strconv.Atoi(val)
		switch {
		case fakeTimeout.MatchString(name):
			c.report(line, name)
		case name == "NCCL_SOCKET_NTHREADS" && (n > 16 || c.aboutTimeout(line)):
			c.report(line, name+"="+val)
		}
	})
}

// eachSetting calls f for each variable that an assignment or a word such as
// --export=ALL,A=1 sets.
func (c *checker) eachSetting(f func(name, val string, line int, branch []script.Arm)) {
	for _, a := range c.job.Assignments {
		f(a.Name, a.Var.Value.String(), a.Line, a.Branch)
	}
	for _, x := range c.job.Commands {
		for _, a := range x.Args {
			for kv := range strings.SplitSeq(strings.TrimPrefix(a.Text(), "--export="), ",") {
				if name, val, ok := strings.Cut(kv, "="); ok {
					f(name, val, a.Line, x.Branch)
				}
			}
		}
	}
}

// aboutTimeout reports whether a comment mentions a timeout, either on the line itself
// or alone on the line before.
func (c *checker) aboutTimeout(line int) bool {
	lines := c.job.Script.Lines
	if line < 1 || line > len(lines) {
		return false
	}
	before := strings.TrimSpace(lines[max(line-2, 0)])
	_, comment, _ := strings.Cut(lines[line-1], "#")
	return timeoutWords.MatchString(comment) || strings.HasPrefix(before, "#") && timeoutWords.MatchString(before)
}

var debugWords = lazy.New(`(?i)debug|dbg|smoke|repro|triage|hang|profil|调试|排查|test`)

func debugLeftOn(c *checker) {
	if len(c.job.Starts) == 0 || c.debugJob() {
		return
	}
	c.eachSetting(func(name, val string, line int, branch []script.Arm) {
		val = strings.Trim(val, `"'`)
		on := name == "CUDA_LAUNCH_BLOCKING" && val == "1" || name == "TORCH_DISTRIBUTED_DEBUG" && strings.EqualFold(val, "DETAIL")
		if on && len(branch) == 0 {
			c.report(line, name+"="+val)
		}
	})
}

// debugJob reports whether the job is for debugging, according to its options and
// comments.
func (c *checker) debugJob() bool {
	for _, n := range []string{"job-name", "partition", "qos", "comment"} {
		if o, has := c.job.Options.Get(n); has && debugWords.MatchString(o.Text()) {
			return true
		}
	}
	if debugComment.MatchString(c.comments()) {
		return true
	}
	o, has := c.job.Options.Get("time")
	return has && shortLimit.MatchString(o.Text())
}

// debugComment matches a comment that says what the job is for, and not the name of a
// variable such as NCCL_DEBUG in it.
var debugComment = lazy.New(`(?i)(?:^|[^\w])debug|调试|排查|repro`)

// shortLimit matches a time limit of half an hour or less.
var shortLimit = lazy.New(`^(0?0:)?0?([12]?\d|30)(:\d+)?$`)
