package job

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/lazy"
	"github.com/megatron-ops/megatron-ops/knowledge/megatron"
)

// maxPoints is the most points of a sweep: Slurm's default MaxArraySize is 1001.
const maxPoints = 1000

// An axis is one parameter of a sweep with its values. Its name is a flag of the
// program without dashes, or env.NAME for an environment variable.
type axis struct {
	Name   string
	Values []string
}

// A Point is one run of a sweep: one value for each axis, in the order of the axes,
// and the specification of that run.
type Point struct {
	Values []string
	Spec   Spec
	axes   []axis
	index  int
}

// String returns the point as axes and values, such as "lr=1e-4 seed=1".
func (p Point) String() string {
	words := make([]string, len(p.axes))
	for i, a := range p.axes {
		words[i] = a.Name + "=" + p.Values[i]
	}
	return strings.Join(words, " ")
}

var (
	axisName  = lazy.New(`^(?:env\.[A-Za-z_][A-Za-z0-9_]{0,127}|[a-z][a-z0-9-]{0,127})$`)
	axisRange = lazy.New(`^(-?[0-9]{1,9})\.\.(-?[0-9]{1,9})(?:\.\.([1-9][0-9]{0,8}))?$`)
)

// readAxis parses an axis such as lr=1e-4,3e-4, seed=1..4, or size=8..64..8 with a
// step of 8.
func readAxis(text string) (axis, lang.Text) {
	name, values, ok := strings.Cut(text, "=")
	a := axis{Name: strings.TrimPrefix(name, "--")}
	if !strings.HasPrefix(a.Name, "env.") {
		a.Name = strings.ReplaceAll(a.Name, "_", "-")
	}
	switch {
	case !ok || values == "":
		return a, phrase("gives no values", "没有给出取值")
	case unprintable(text) != fine:
		return a, unprintable(text)
	case !axisName.MatchString(a.Name):
		return a, phrase("names neither a flag nor a variable", "既不是参数名，也不是变量名")
	}
	for v := range strings.SplitSeq(values, ",") {
		m := axisRange.FindStringSubmatch(v)
		if m == nil {
			a.Values = append(a.Values, v)
			continue
		}
		lo, _ := strconv.Atoi(m[1])
		hi, _ := strconv.Atoi(m[2])
		step := 1
		if m[3] != "" {
			step, _ = strconv.Atoi(m[3])
		}
		if hi < lo {
			return a, phrase("counts down", "是递减的")
		}
		for n := lo; n <= hi && len(a.Values) <= maxPoints; n += step {
			a.Values = append(a.Values, strconv.Itoa(n))
		}
	}
	for i, v := range a.Values {
		if v == "" {
			return a, phrase("has an empty value", "含有空值")
		}
		if slices.Contains(a.Values[:i], v) {
			return a, phrase("gives %s twice", "重复给出 %s", strconv.Quote(v))
		}
	}
	return a, fine
}

// sweep validates the axes and the number of points.
func (v *validator) sweep(s Spec) {
	if len(s.Sweep) == 0 {
		return
	}
	axes, points := []axis{}, 1
	for _, text := range s.Sweep {
		a, why := readAxis(text)
		if why == fine && slices.ContainsFunc(axes, func(b axis) bool { return a.Name == b.Name }) {
			why = phrase("is given twice", "重复给出")
		}
		if why != fine {
			v.add("sweep", text, why, phrase("give a flag and its values, such as lr=1e-4,3e-4 or seed=1..4, one element each", "请给出参数及其取值，例如 lr=1e-4,3e-4 或 seed=1..4，每项一个"))
			return
		}
		if name, is := strings.CutPrefix(a.Name, "env."); is {
			for _, value := range a.Values {
				v.environment("sweep.env", map[string]string{name: value})
			}
		}
		axes, points = append(axes, a), points*len(a.Values)
		if points > maxPoints {
			v.add("sweep", text, phrase("makes more than %d points", "组成超过 %d 个点", maxPoints), phrase("split the sweep", "请拆分 sweep"))
			return
		}
	}
	if list, _, _ := strings.Cut(s.Array, "%"); s.Array != "" && list != arrayOf(points) {
		v.add("array", s.Array, phrase("does not count the %d points of the sweep", "与 sweep 的 %d 个点不符", points), phrase("leave it out, or give %s, such as with %%4 for four at a time", "请去掉，或写 %s，例如加 %%4 表示同时四个", arrayOf(points)))
	}
	for _, other := range []struct {
		field string
		set   bool
	}{{"chain", s.Chain != nil && *s.Chain > 1}, {"every", s.Every != ""}, {"train", s.Train != ""}} {
		if other.set {
			v.add(other.field, "", notTogether("sweep"), phrase("keep one of them", "只保留其中一个"))
		}
	}
}

// arrayOf returns the array with one element for each of n points.
func arrayOf(n int) string { return fmt.Sprintf("0-%d", n-1) }

// Recounted returns s with an array that fits the number of points of its sweep, for
// use after the sweep was replaced. The array keeps its limit of elements that run at
// the same time.
func (s Spec) Recounted() Spec {
	had := s.Array
	s.Array = ""
	points := s.Points()
	if len(points) == 0 {
		s.Array = had
		return s
	}
	s.Array = arrayOf(len(points))
	if _, limit, limited := strings.Cut(had, "%"); limited {
		s.Array += "%" + limit
	}
	return s
}

// Points returns the runs of a sweep; the last axis varies fastest. It returns none if
// the specification has no sweep, or a sweep that Validate rejects. Each point has its
// own folders for checkpoints and TensorBoard, inside the folders that the
// specification names.
func (s Spec) Points() []Point {
	var v validator
	if v.sweep(s); len(s.Sweep) == 0 || len(v.errs) > 0 {
		return nil
	}
	points := []Point{{}}
	var axes []axis
	for _, text := range s.Sweep {
		a, _ := readAxis(text)
		axes = append(axes, a)
		var next []Point
		for _, p := range points {
			for _, value := range a.Values {
				next = append(next, Point{Values: append(slices.Clone(p.Values), value)})
			}
		}
		points = next
	}
	for i := range points {
		p := &points[i]
		p.axes, p.index = axes, i
		p.Spec = s
		p.Spec.Sweep, p.Spec.Array = nil, ""
		p.Spec.Args = append(slices.Clone(s.Args), p.args(s)...)
		if env := p.env(); len(env) > 0 {
			p.Spec.Env = map[string]string{}
			maps.Copy(p.Spec.Env, s.Env)
			maps.Copy(p.Spec.Env, env)
		}
	}
	return points
}

// ownFolders are Megatron's flags whose folders must differ between the points.
var ownFolders = strings.Fields("--save --load --tensorboard-dir --wandb-save-dir --non-persistent-global-ckpt-dir")

// args returns the arguments that a point adds to those of the specification: the
// point's flags, and the point's folders for the folder flags that the specification
// has. Of several values of a flag, the program uses the last. All points share the
// folder of --load if it is not also the folder of --save.
func (p Point) args(s Spec) []string {
	var words []string
	folder := make([]string, len(p.axes))
	for i, a := range p.axes {
		given := strings.TrimPrefix(a.Name, "env.") + "-" + p.Values[i]
		if folder[i] = badInName.ReplaceAllString(given, "-"); folder[i] != given {
			folder[i] += "-" + strconv.Itoa(p.index) // the replacement may make two values equal
		}
		if !strings.HasPrefix(a.Name, "env.") {
			words = append(words, "--"+a.Name, p.Values[i])
		}
	}
	save := megatron.LastOf(s.Args, "--save")
	for _, flag := range ownFolders {
		dir := megatron.LastOf(s.Args, flag)
		swept := slices.ContainsFunc(p.axes, func(a axis) bool { return "--"+a.Name == flag })
		if dir == "" || swept || flag == "--load" && dir != save {
			continue
		}
		words = append(words, flag, strings.TrimRight(dir, "/")+"/"+strings.Join(folder, "_"))
	}
	return words
}

func (p Point) env() map[string]string {
	env := map[string]string{}
	for i, a := range p.axes {
		if name, is := strings.CutPrefix(a.Name, "env."); is {
			env[name] = p.Values[i]
		}
	}
	return env
}

// points returns the commands that give each element of the array the arguments and
// variables of its point.
func (r *rendering) points() string {
	points := r.Spec.Points()
	if len(points) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("# A sweep: each element of the array is one point; the last value of a flag counts.\ncase $SLURM_ARRAY_TASK_ID in\n")
	for i, p := range points {
		fmt.Fprintf(&b, "  %d)\n", i)
		if words := p.args(r.Spec); len(words) > 0 {
			fmt.Fprintf(&b, "    ARGS+=(%s)\n", strings.Join(argumentLines(words), " "))
		}
		env := p.env()
		for _, name := range sorted(env) {
			fmt.Fprintf(&b, "    export %s=%s\n", name, quote(env[name]))
		}
		fmt.Fprintf(&b, "    echo %s ;;\n", quote("sweep: point "+strconv.Itoa(i)+": "+p.String()))
	}
	fmt.Fprintf(&b, "  *) echo \"sweep: no point $SLURM_ARRAY_TASK_ID\" >&2; exit 3 ;;\nesac")
	return b.String()
}

// sweptNames returns the names of the environment variables that the sweep varies.
func (s Spec) sweptNames() []string {
	points := s.Points()
	if len(points) == 0 {
		return nil
	}
	return sorted(points[0].env())
}
