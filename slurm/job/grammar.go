package job

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/internal/shellword"
	"github.com/megatron-ops/megatron-ops/slurm/hostlist"
)

// A grammar says what one field accepts: what is wrong with a value, or "".
type grammar struct {
	check func(value string) string
	fix   string // what would work
}

// form is a grammar that one regular expression describes.
func form(re, fix string) grammar {
	r := lazy.New(`^(?:` + re + `)$`)
	return grammar{func(v string) string {
		if r.MatchString(v) {
			return ""
		}
		if why := unprintable(v); why != "" {
			return why
		}
		return "has another form"
	}, fix}
}

// oneOf is a grammar of few words.
func oneOf(words ...string) grammar {
	return grammar{func(v string) string {
		if slices.Contains(words, v) {
			return ""
		}
		return "is not one of the words it may be"
	}, "one of " + strings.Join(words, ", ")}
}

// unprintable says which character of v a line of text cannot show.
func unprintable(v string) string {
	if !utf8.ValidString(v) {
		return "is not valid UTF-8"
	}
	for _, r := range v {
		if shellword.Invisible(r) {
			return fmt.Sprintf("holds the character %U, which does not show", r)
		}
	}
	return ""
}

const word = `[A-Za-z0-9_][A-Za-z0-9._@+-]{0,127}`

var (
	nameGrammar = grammar{func(v string) string {
		switch {
		case !nameForm.MatchString(v):
			if why := unprintable(v); why != "" {
				return why
			}
			return "is not a job name"
		case strings.Trim(v, ".") == "" || v[0] == '-':
			return "is not a job name"
		}
		return ""
	}, "1 to 64 of letters, digits, '.', '_', '+', '-', not starting with '-'"}
	wordGrammar  = form(word, "letters, digits, '.', '_', '-', '@', '+'")
	wordsGrammar = form(word+`(?:,`+word+`)*`, "names of letters, digits, '.', '_', '-', with commas between")
	hostGrammar  = grammar{checkHosts, "node names such as gpu[01-04,7], at most 10000 of them"}
	timeGrammar  = form(`(?i:unlimited|infinite)|[0-9]{1,9}|[0-9]{1,9}:[0-9]{1,2}(?::[0-9]{1,2})?|[0-9]{1,6}-[0-9]{1,2}(?::[0-9]{1,2}){0,2}`,
		"minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM or D-HH:MM:SS, such as 04:00:00")
	memGrammar        = form(`[0-9]{1,12}[KMGTkmgt]?`, "a number with K, M, G or T, such as 1000G, or 0 for all")
	signalGrammar     = grammar{checkSignal, "a signal and the seconds before the end, such as USR1@300 or B:TERM@120"}
	dependencyGrammar = grammar{checkDependency, "such as afterok:4711, afterany:12:13 or singleton, joined with ',' for all or '?' for any"}
	arrayGrammar      = grammar{checkArray, "such as 1-10%1, 0-15:4 or 1,3,5-7"}
	constraintGrammar = grammar{checkConstraint, "features joined with & or |, such as h100&ib or [rack1|rack2]"}
	beginGrammar      = grammar{checkBegin, "such as 16:00, now+2hours, tomorrow or 2030-01-20T12:34:00"}
	mailUserGrammar   = form(`[A-Za-z0-9_][A-Za-z0-9._+-]{0,63}(?:@[A-Za-z0-9][A-Za-z0-9.-]{0,252})?`, "a user or an address such as alice@example.org")
	mailTypeGrammar   = grammar{checkMailTypes, "of " + strings.Join(mailTypes, ", ")}
	commentGrammar    = grammar{func(v string) string {
		if len(v) > 1024 {
			return "is longer than 1024 bytes"
		}
		return unprintable(v)
	}, "one line of text"}
	everyGrammar   = form(`hourly|daily|weekly|[1-9][0-9]{0,4}(?:m|h|d|min|minutes|hours|days)`, "hourly, daily, weekly or a period such as 30m, 12h, 2d")
	envNameGrammar = form(`[A-Za-z_][A-Za-z0-9_]{0,127}`, "letters, digits and '_', not starting with a digit")
	rdzvKeyGrammar = form(`[a-z][a-z0-9_]{0,63}`, "an option such as join_timeout")
)

var (
	nameForm  = lazy.New(`^[A-Za-z0-9._+-]{1,64}$`)
	hostsForm = lazy.New(`^[A-Za-z0-9._,\[\]-]+$`)
)

func checkHosts(v string) string {
	if strings.Contains(v, "/") {
		return "has a '/', with which Slurm reads names from a file"
	}
	if len(v) > 64<<10 || !hostsForm.MatchString(v) {
		return cmpOr(unprintable(v), "is not a list of nodes")
	}
	names, err := hostlist.Expand(v)
	switch {
	case err != nil:
		return "is not a list of nodes: " + err.Error()
	case len(names) == 0:
		return "names no node"
	case len(names) > 10_000:
		return fmt.Sprintf("names %d nodes", len(names))
	case strings.HasPrefix(v, "-") || strings.Contains(v, ",-"):
		return "has a name that starts with '-'"
	}
	return ""
}

// signals are the names that Slurm's --signal knows, without SIG.
var signals = strings.Fields("HUP INT QUIT ABRT KILL ALRM TERM USR1 USR2 URG CONT STOP TSTP TTIN TTOU")

var signalForm = lazy.New(`^(?:(?i:R|B|RB|BR):)?(?i:SIG)?([A-Za-z0-9]{1,8})(?:@([0-9]{1,5}))?$`)

func checkSignal(v string) string {
	m := signalForm.FindStringSubmatch(v)
	if m == nil {
		return cmpOr(unprintable(v), "has another form")
	}
	if n, err := strconv.Atoi(m[1]); err == nil && n >= 1 && n <= 64 {
		return secondsOf(m[2])
	}
	if !slices.Contains(signals, strings.ToUpper(m[1])) {
		return "names no signal that Slurm knows"
	}
	return secondsOf(m[2])
}

func secondsOf(s string) string {
	if n, _ := strconv.Atoi(s); n > 65535 {
		return "is more than 65535 seconds early"
	}
	return ""
}

var (
	jobs           = `[1-9][0-9]{0,9}(?:_(?:[0-9]{1,7}|\*))?`
	dependencyForm = lazy.New(`^(?:singleton|after(?::` + jobs + `(?:\+[0-9]{1,6})?)+|(?:afterany|afterok|afternotok|aftercorr|afterburstbuffer)(?::` + jobs + `)+)$`)
	bareID         = lazy.New(`^` + jobs + `$`)
)

func checkDependency(v string) string {
	if strings.Contains(v, ",") && strings.Contains(v, "?") {
		return "mixes ',' and '?'"
	}
	for _, one := range strings.FieldsFunc(v+" ", func(r rune) bool { return r == ',' || r == '?' }) {
		one = strings.TrimSuffix(one, " ")
		switch {
		case bareID.MatchString(one):
			return "does not say which end to wait for (Slurm would take afterany)"
		case strings.HasPrefix(one, "expand"):
			return "would change another job"
		case !dependencyForm.MatchString(one):
			return cmpOr(unprintable(v), "is not a dependency that Slurm knows")
		}
	}
	if strings.Trim(v, ",?") != v || v == "" {
		return "ends in the middle"
	}
	return ""
}

var arrayPart = lazy.New(`^([0-9]{1,7})(?:-([0-9]{1,7})(?::([0-9]{1,7}))?)?$`)

// maxArray is the highest index that Slurm's MaxArraySize can be set to allow.
const maxArray = 4_000_000

func checkArray(v string) string {
	list, most, limited := strings.Cut(v, "%")
	if limited {
		if n, err := strconv.Atoi(most); err != nil || n < 1 || most[0] == '+' {
			return "lets no element run: a number of at least 1 follows %"
		}
	}
	for _, s := range strings.Split(list, ",") {
		m := arrayPart.FindStringSubmatch(s)
		if m == nil {
			return cmpOr(unprintable(v), "is not a list of indices")
		}
		lo, _ := strconv.Atoi(m[1])
		hi := lo
		if m[2] != "" {
			hi, _ = strconv.Atoi(m[2])
		}
		switch {
		case hi < lo:
			return "counts down"
		case hi > maxArray:
			return fmt.Sprintf("has an index over %d", maxArray)
		case m[3] != "" && strings.Trim(m[3], "0") == "":
			return "has a step of 0"
		}
	}
	return ""
}

var constraintForm = lazy.New(`^[A-Za-z0-9_.:=+&|*()\[\],-]{1,512}$`)

var uncounted = lazy.New(`\*(?:0|[^0-9]|$)`)

func checkConstraint(v string) string {
	if !constraintForm.MatchString(v) {
		return cmpOr(unprintable(v), "has a character that features do not have")
	}
	var open []byte
	for i := range len(v) {
		switch c := v[i]; c {
		case '(', '[':
			open = append(open, c)
		case ')', ']':
			if len(open) == 0 || (open[len(open)-1] == '(') != (c == ')') {
				return "has brackets that do not match"
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		return "has brackets that do not match"
	}
	if uncounted.MatchString(v) {
		return "has a '*' without a number of nodes of at least 1"
	}
	if strings.IndexAny(v[:1], "&|*-,=") == 0 || strings.ContainsAny(v[len(v)-1:], "&|*,") {
		return "starts or ends with an operator"
	}
	return ""
}

// beginForm is the grammar of --begin in Slurm's manual: a word, a time of
// day, a date, or now and a count.
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

func checkBegin(v string) string {
	if !beginWords.MatchString(v) {
		return cmpOr(unprintable(v), "is not a time that Slurm knows")
	}
	if d := isoDate.FindString(v); d != "" {
		if _, err := time.Parse(time.DateOnly, d); err != nil {
			return "names a day that no month has"
		}
	}
	return ""
}

var mailTypes = strings.Fields("NONE BEGIN END FAIL REQUEUE ALL INVALID_DEPEND STAGE_OUT TIME_LIMIT TIME_LIMIT_90 TIME_LIMIT_80 TIME_LIMIT_50 ARRAY_TASKS")

func checkMailTypes(v string) string {
	for _, one := range strings.Split(v, ",") {
		if !slices.Contains(mailTypes, strings.ToUpper(one)) {
			return cmpOr(unprintable(v), "has an event that Slurm does not mail about")
		}
	}
	return ""
}

// checkPath says what is wrong with a path that the script will use as it
// stands: nothing in it is expanded.
func checkPath(v string) string {
	switch {
	case unprintable(v) != "":
		return unprintable(v)
	case len(v) > 4096:
		return "is longer than 4096 bytes"
	case strings.HasPrefix(v, "-"):
		return "starts with '-'"
	case strings.HasPrefix(v, "~"):
		return "starts with '~', which is not expanded"
	case slices.Contains(strings.Split(v, "/"), ".."):
		return "goes up with '..'"
	}
	return ""
}

func checkAbsolute(v string) string {
	if why := checkPath(v); why != "" {
		return why
	}
	if !path.IsAbs(v) {
		return "is not absolute"
	}
	return ""
}

// checkLogDir is stricter than a path: Slurm gives % and \ a meaning in the
// names of logs, and a name with $ would be made as it stands.
func checkLogDir(v string) string {
	switch {
	case checkPath(v) != "":
		return checkPath(v)
	case path.IsAbs(v):
		return "lies outside the worktree"
	case strings.ContainsAny(v, "%\\$`"):
		return "has a character of % \\ $ `, which Slurm or a reader would take for more than a name"
	}
	return ""
}

var registry = lazy.New(`^[A-Za-z0-9][A-Za-z0-9._:/@#+=-]{0,511}$`)

// checkImage takes a path of an image file or a name in a registry.
func checkImage(v string) string {
	if why := checkPath(v); why != "" {
		return why
	}
	if strings.HasPrefix(v, "/") || strings.HasPrefix(v, "./") {
		return ""
	}
	if !registry.MatchString(v) {
		return "is neither a path nor a name in a registry"
	}
	return ""
}

var mountFlags = lazy.New(`^[A-Za-z0-9_=+,-]{1,128}$`)

func checkMount(v string) string {
	parts := strings.Split(v, ":")
	if len(parts) > 3 {
		return "has more than host:inside:flags"
	}
	for _, p := range parts[:min(2, len(parts))] {
		if why := checkAbsolute(p); why != "" {
			return why
		}
		if strings.Contains(p, ",") {
			return "has a comma, which separates mounts"
		}
	}
	if len(parts) > 1 && path.Clean(parts[1]) == "/" {
		return "would hide the whole image"
	}
	if len(parts) == 3 && !mountFlags.MatchString(parts[2]) {
		return "has flags that no runtime knows"
	}
	return ""
}
