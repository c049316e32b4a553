package job

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/shellword"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
	"github.com/megatron-ops/megatron-ops/slurm"
	"github.com/megatron-ops/megatron-ops/slurm/diagnose/outcome"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// A grammar defines which values one field accepts.
type grammar struct {
	check func(value string) lang.Text // what is wrong with value, or fine
	fix   lang.Text                    // what would work
}

// fine is the result of a check that accepts the value.
var fine lang.Text

func longerThan(bytes int) lang.Text {
	return phrase("is longer than %d bytes", "超过 %d 字节", bytes)
}

func oneOfThese(words []string) lang.Text {
	return phrase("one of %s", "以下之一：%s", strings.Join(words, ", "))
}

// form returns a grammar that accepts the values that fully match re.
func form(re string, fix lang.Text) grammar {
	r := lazy.New(`^(?:` + re + `)$`)
	return grammar{func(v string) lang.Text {
		if r.MatchString(v) {
			return fine
		}
		return cmp.Or(unprintable(v), phrase("does not have the expected form", "格式不符"))
	}, fix}
}

// oneOf returns a grammar that accepts only the given words.
func oneOf(words ...string) grammar {
	return grammar{func(v string) lang.Text {
		if slices.Contains(words, v) {
			return fine
		}
		if meant := nearest(v, words); meant != "" {
			return phrase("is not one of the allowed words; did you mean %s?", "不在可选值之列；是否想写 %s？", meant)
		}
		return phrase("is not one of the allowed words", "不在可选值之列")
	}, oneOfThese(words)}
}

// classGrammar accepts the failure classes that a diagnosis can name: a retry for any
// other word would never happen.
var classGrammar = oneOf(failureClasses()...)

func failureClasses() (ids []string) {
	for _, c := range outcome.Classes() {
		if c.ID != outcome.Success && c.ID != outcome.Running {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// unprintable reports the first character of v that is invisible in a line of text.
func unprintable(v string) lang.Text {
	if !utf8.ValidString(v) {
		return phrase("is not valid UTF-8", "不是有效的 UTF-8")
	}
	for _, r := range v {
		if shellword.Invisible(r) {
			return phrase("contains the invisible character %U", "含有不可见字符 %U", r)
		}
	}
	return fine
}

// duration matches a duration in Slurm's formats.
const duration = `[0-9]{1,9}|[0-9]{1,9}:[0-9]{1,2}(?::[0-9]{1,2})?|[0-9]{1,6}-[0-9]{1,2}(?::[0-9]{1,2}){0,2}`

const word = `[A-Za-z0-9_][A-Za-z0-9._@+-]{0,127}`

var (
	nameGrammar = grammar{func(v string) lang.Text {
		if !nameForm.MatchString(v) || strings.Trim(v, ".") == "" || v[0] == '-' {
			return cmp.Or(unprintable(v), phrase("is not a job name", "不是有效的作业名"))
		}
		return fine
	}, phrase("1 to 64 of letters, digits, '.', '_', '+', '-', not starting with '-'", "1 到 64 个字母、数字、'.'、'_'、'+'、'-'，不以 '-' 开头")}
	wordGrammar  = form(word, phrase("letters, digits, '.', '_', '-', '@', '+'", "字母、数字、'.'、'_'、'-'、'@'、'+'"))
	wordsGrammar = form(word+`(?:,`+word+`)*`, phrase("names of letters, digits, '.', '_', '-', with commas between", "由字母、数字、'.'、'_'、'-' 组成的名称，用逗号分隔"))
	hostGrammar  = grammar{checkHosts, phrase("node names such as gpu[01-04,7], at most 10000 of them", "节点名，例如 gpu[01-04,7]，最多 10000 个")}
	timeGrammar  = form(`(?i:unlimited|infinite)|`+duration,
		phrase("minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM or D-HH:MM:SS, such as 04:00:00", "分钟数、MM:SS、HH:MM:SS、D-HH、D-HH:MM 或 D-HH:MM:SS，例如 04:00:00"))
	memGrammar        = form(`[0-9]{1,12}[KMGTkmgt]?`, phrase("a number with K, M, G or T, such as 1000G, or 0 for all", "带 K、M、G 或 T 的数，例如 1000G；0 表示全部"))
	signalGrammar     = grammar{checkSignal, phrase("a signal and the seconds before the end, such as USR1@300 or B:TERM@120", "信号与距结束的秒数，例如 USR1@300 或 B:TERM@120")}
	dependencyGrammar = grammar{checkDependency, phrase("a dependency such as afterok:4711, afterany:12:13 or singleton, joined with ',' for all or '?' for any", "依赖，例如 afterok:4711、afterany:12:13 或 singleton；用 ',' 表示全部满足，'?' 表示任一满足")}
	arrayGrammar      = grammar{checkArray, phrase("indices such as 1-10%1, 0-15:4 or 1,3,5-7", "数组下标，例如 1-10%1、0-15:4 或 1,3,5-7")}
	constraintGrammar = grammar{checkConstraint, phrase("features joined with & or |, such as h100&ib or [rack1|rack2]", "用 & 或 | 连接的特性，例如 h100&ib 或 [rack1|rack2]")}
	beginGrammar      = grammar{checkBegin, phrase("a time such as 16:00, now+2hours, tomorrow or 2030-01-20T12:34:00", "时间，例如 16:00、now+2hours、tomorrow 或 2030-01-20T12:34:00")}
	mailUserGrammar   = form(`[A-Za-z0-9_][A-Za-z0-9._+-]{0,63}(?:@[A-Za-z0-9][A-Za-z0-9.-]{0,252})?`, phrase("a user or an address such as alice@example.org", "用户名或邮件地址，例如 alice@example.org"))
	mailTypeGrammar   = grammar{checkMailTypes, phrase("events of %s", "以下事件：%s", strings.Join(slurm.MailTypes, ", "))}
	commentGrammar    = grammar{func(v string) lang.Text {
		if len(v) > 1024 {
			return longerThan(1024)
		}
		return unprintable(v)
	}, phrase("one line of text", "一行文本")}
	switchesGrammar  = form(`[1-9][0-9]{0,5}(?:@(?:`+duration+`))?`, phrase("a number of switches and a time to wait, such as 1@01:00:00", "交换机数与等待时间，例如 1@01:00:00"))
	pathEntryGrammar = grammar{func(v string) lang.Text {
		if strings.Contains(v, ":") {
			return phrase("has a ':', which separates the folders of a PATH", "含有 ':'，而它用于分隔 PATH 中的目录")
		}
		return checkAbsolute(v)
	}, phrase("an absolute folder such as /opt/uv/bin, one element each", "绝对路径的目录，例如 /opt/uv/bin，每项一个")}
	everyGrammar   = form(`hourly|daily|weekly|[1-9][0-9]{0,4}(?:m|h|d|min|minutes|hours|days)`, phrase("hourly, daily, weekly or a period such as 30m, 12h, 2d", "周期：hourly、daily、weekly，或如 30m、12h、2d 的间隔"))
	envNameGrammar = form(`[A-Za-z_][A-Za-z0-9_]{0,127}`, phrase("letters, digits and '_', not starting with a digit", "字母、数字与 '_'，不以数字开头"))
	releaseGrammar = grammar{func(v string) lang.Text {
		if _, ok := megatron.ParseRelease(v); ok || megatron.IsCommit(v) {
			return fine
		}
		return phrase("names no release of Megatron-LM", "不是 Megatron-LM 的版本")
	}, phrase("a release such as 0.17.1, a range such as >=0.16,<0.18, a commit, or main", "版本号如 0.17.1、范围如 >=0.16,<0.18、提交号，或 main")}
	extraFlagGrammar = form(`--[A-Za-z0-9][A-Za-z0-9_-]{0,127}`, phrase("a flag such as --our-own-flag, without its value", "参数名，例如 --our-own-flag，不带取值"))
	rdzvKeyGrammar   = form(`[a-z][a-z0-9_]{0,63}`, phrase("an option such as join_timeout", "选项名，例如 join_timeout"))
)

var (
	nameForm  = lazy.New(`^[A-Za-z0-9._+-]{1,64}$`)
	hostsForm = lazy.New(`^[A-Za-z0-9._,\[\]-]+$`)
)

func checkHosts(v string) lang.Text {
	if strings.Contains(v, "/") {
		return phrase("has a '/', with which Slurm reads names from a file", "含有 '/'，Slurm 会把它当作文件来读取节点名")
	}
	if len(v) > 64<<10 || !hostsForm.MatchString(v) {
		return cmp.Or(unprintable(v), phrase("is not a list of nodes", "不是节点列表"))
	}
	names, err := hostlist.Expand(v)
	switch {
	case err != nil:
		return phrase("is not a list of nodes: %s", "不是节点列表：%s", err.Error())
	case len(names) == 0:
		return phrase("names no node", "没有指明任何节点")
	case len(names) > 10_000:
		return phrase("names %d nodes", "指明了 %d 个节点", len(names))
	case strings.HasPrefix(v, "-") || strings.Contains(v, ",-"):
		return phrase("has a name that starts with '-'", "含有以 '-' 开头的名称")
	}
	return fine
}

var signalForm = lazy.New(`^(?:(?i:R|B|RB|BR):)?(?i:SIG)?([A-Za-z0-9]{1,8})(?:@([0-9]{1,5}))?$`)

func checkSignal(v string) lang.Text {
	m := signalForm.FindStringSubmatch(v)
	if m == nil {
		return cmp.Or(unprintable(v), phrase("does not have the expected form", "格式不符"))
	}
	if _, known := slurm.SignalNumber(m[1]); !known {
		return phrase("is not a signal that Slurm knows", "不是 Slurm 认识的信号")
	}
	if seconds, _ := strconv.Atoi(m[2]); seconds > 65535 {
		return phrase("is more than 65535 seconds early", "提前量超过 65535 秒")
	}
	return fine
}

var (
	jobs           = `[1-9][0-9]{0,9}(?:_(?:[0-9]{1,7}|\*))?`
	dependencyForm = lazy.New(`^(?:singleton|after(?::` + jobs + `(?:\+[0-9]{1,6})?)+|(?:afterany|afterok|afternotok|aftercorr|afterburstbuffer)(?::` + jobs + `)+)$`)
	bareID         = lazy.New(`^` + jobs + `$`)
)

func checkDependency(v string) lang.Text {
	if strings.Contains(v, ",") && strings.Contains(v, "?") {
		return phrase("mixes ',' and '?'", "混用了 ',' 与 '?'")
	}
	for _, one := range strings.FieldsFunc(v+" ", func(r rune) bool { return r == ',' || r == '?' }) {
		one = strings.TrimSuffix(one, " ")
		switch {
		case bareID.MatchString(one):
			return phrase("does not say which end to wait for (Slurm would use afterany)", "没有说明等待哪种结束（Slurm 会当作 afterany）")
		case strings.HasPrefix(one, "expand"):
			return phrase("would change another job", "会改变另一个作业")
		case !dependencyForm.MatchString(one):
			return cmp.Or(unprintable(v), phrase("is not a dependency that Slurm knows", "不是 Slurm 认识的依赖"))
		}
	}
	if strings.Trim(v, ",?") != v || v == "" {
		return phrase("is incomplete", "不完整")
	}
	return fine
}

var arrayPart = lazy.New(`^([0-9]{1,7})(?:-([0-9]{1,7})(?::([0-9]{1,7}))?)?$`)

func checkArray(v string) lang.Text {
	list, most, limited := strings.Cut(v, "%")
	if limited {
		if n, err := strconv.Atoi(most); err != nil || n < 1 || most[0] == '+' {
			return phrase("lets no element run: % needs a number of at least 1 after it", "不允许任何元素运行：% 之后须为至少 1 的数")
		}
	}
	for s := range strings.SplitSeq(list, ",") {
		m := arrayPart.FindStringSubmatch(s)
		if m == nil {
			return cmp.Or(unprintable(v), phrase("is not a list of indices", "不是数组下标列表"))
		}
		lo, _ := strconv.Atoi(m[1])
		hi := lo
		if m[2] != "" {
			hi, _ = strconv.Atoi(m[2])
		}
		switch {
		case hi < lo:
			return phrase("counts down", "是递减的")
		case hi > slurm.MostIndices:
			return phrase("has an index over %d", "下标超过 %d", slurm.MostIndices)
		case m[3] != "" && strings.Trim(m[3], "0") == "":
			return phrase("has a step of 0", "步长为 0")
		}
	}
	return fine
}

var constraintForm = lazy.New(`^[A-Za-z0-9_.:=+&|*()\[\],-]{1,512}$`)

var uncounted = lazy.New(`\*(?:0|[^0-9]|$)`)

func checkConstraint(v string) lang.Text {
	if !constraintForm.MatchString(v) {
		return cmp.Or(unprintable(v), phrase("has a character that is not allowed in features", "含有节点特性不会有的字符"))
	}
	var open []byte
	for i := range len(v) {
		switch c := v[i]; c {
		case '(', '[':
			open = append(open, c)
		case ')', ']':
			if len(open) == 0 || (open[len(open)-1] == '(') != (c == ')') {
				return phrase("has brackets that do not match", "括号不配对")
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		return phrase("has brackets that do not match", "括号不配对")
	}
	if uncounted.MatchString(v) {
		return phrase("has a '*' without a number of nodes of at least 1", "'*' 之后没有至少为 1 的节点数")
	}
	if strings.IndexAny(v[:1], "&|*-,=") == 0 || strings.ContainsAny(v[len(v)-1:], "&|*,") {
		return phrase("starts or ends with an operator", "以运算符开头或结尾")
	}
	return fine
}

// beginForm returns the grammar of --begin from Slurm's manual: a word, a time of
// day, a date, or now with an offset.
func beginForm() string {
	clock := `(?:[01]?[0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9])?(?: ?[AaPp][Mm])?`
	date := `[0-9]{6}|(?:0?[1-9]|1[0-2])[/.](?:0?[1-9]|[12][0-9]|3[01])(?:[/.][0-9]{2,4})?|[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])`
	day := `today|tomorrow`
	named := `midnight|noon|fika|teatime`
	unit := `(?:seconds?|minutes?|hours?|days?|weeks?)`
	return `(?i:now)(?:\+[0-9]{1,9} ?` + unit + `?)?` +
		`|(?:` + named + `|` + clock + `)(?: (?:` + day + `|` + date + `))?` +
		`|(?:` + day + `|` + date + `)(?:[T -](?:` + clock + `))?`
}

var (
	beginWords = lazy.New(`^(?:` + beginForm() + `)$`)
	isoDate    = lazy.New(`[0-9]{4}-[0-9]{2}-[0-9]{2}`)
)

func checkBegin(v string) lang.Text {
	if !beginWords.MatchString(v) {
		return cmp.Or(unprintable(v), phrase("is not a time that Slurm knows", "不是 Slurm 认识的时间"))
	}
	if d := isoDate.FindString(v); d != "" {
		if _, err := time.Parse(time.DateOnly, d); err != nil {
			return phrase("names a date that does not exist", "日期不存在")
		}
	}
	return fine
}

func checkMailTypes(v string) lang.Text {
	for one := range strings.SplitSeq(v, ",") {
		if !slices.Contains(slurm.MailTypes, strings.ToUpper(one)) {
			return cmp.Or(unprintable(v), phrase("has an event that Slurm does not mail about", "含有 Slurm 不发邮件的事件"))
		}
	}
	return fine
}

// checkPath reports what is wrong with a path. The script uses paths literally,
// without any expansion.
func checkPath(v string) lang.Text {
	switch {
	case unprintable(v) != fine:
		return unprintable(v)
	case len(v) > 4096:
		return longerThan(4096)
	case strings.HasPrefix(v, "-"):
		return phrase("starts with '-'", "以 '-' 开头")
	case strings.HasPrefix(v, "~"):
		return phrase("starts with '~', which is not expanded", "以 '~' 开头，而此处不会展开")
	case slices.Contains(strings.Split(v, "/"), ".."):
		return phrase("contains '..', which leads to a parent folder", "用 '..' 指向了上级目录")
	}
	return fine
}

// IsWord reports whether v is valid as an account, a cluster or another plain name in
// a specification.
func IsWord(v string) bool { return wordGrammar.check(v) == fine }

// IsAbsolute reports whether v is valid as an absolute path in a specification.
func IsAbsolute(v string) bool { return checkAbsolute(v) == fine }

func checkAbsolute(v string) lang.Text {
	if why := checkPath(v); why != fine {
		return why
	}
	if !path.IsAbs(v) {
		return phrase("is not absolute", "不是绝对路径")
	}
	return fine
}

// isSystemFolder reports whether an absolute path is the root or lies in a folder of
// the operating system.
func isSystemFolder(v string) bool {
	top, _, _ := strings.Cut(strings.TrimPrefix(path.Clean(v), "/"), "/")
	return top == "" || slices.Contains(strings.Fields("bin boot dev etc lib lib32 lib64 libx32 proc root run sbin sys usr var"), top)
}

// checkLogDir is stricter than checkPath: Slurm interprets % and \ in the names of
// logs, and would create a folder with a literal $ in its name.
func checkLogDir(v string) lang.Text {
	switch {
	case checkPath(v) != fine:
		return checkPath(v)
	case path.IsAbs(v) && isSystemFolder(v):
		return phrase("lies in a folder of the operating system", "位于操作系统的目录中")
	case strings.ContainsAny(v, "%\\$`"):
		return phrase("has a character of % \\ $ `, which Slurm or a reader would take for more than a name", "含有 % \\ $ ` 之一，Slurm 或读者会把它当成名称以外的东西")
	}
	return fine
}

var registry = lazy.New(`^[A-Za-z0-9][A-Za-z0-9._:/@#+=-]{0,511}$`)

// checkImage accepts the path of an image file or a name in a registry.
func checkImage(v string) lang.Text {
	if why := checkPath(v); why != fine {
		return why
	}
	if strings.HasPrefix(v, "/") || strings.HasPrefix(v, "./") {
		return fine
	}
	if !registry.MatchString(v) {
		return phrase("is neither a path nor a name in a registry", "既不是路径，也不是镜像仓库中的名称")
	}
	return fine
}

var mountFlags = lazy.New(`^[A-Za-z0-9_=+,-]{1,128}$`)

func checkMount(v string) lang.Text {
	parts := strings.Split(v, ":")
	if len(parts) > 3 {
		return phrase("has more parts than host:inside:flags", "多于 host:inside:flags 三段")
	}
	for _, p := range parts[:min(2, len(parts))] {
		if why := checkAbsolute(p); why != fine {
			return why
		}
		if strings.Contains(p, ",") {
			return phrase("has a comma, which separates mounts", "含有逗号，而逗号用于分隔多个挂载")
		}
	}
	if len(parts) > 1 && path.Clean(parts[1]) == "/" {
		return phrase("would hide the whole image", "会遮住整个镜像")
	}
	if len(parts) == 3 && !mountFlags.MatchString(parts[2]) {
		return phrase("has flags that no container runtime knows", "含有任何容器运行时都不认识的标志")
	}
	return fine
}
