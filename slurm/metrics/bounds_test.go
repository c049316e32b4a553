package metrics

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// losses returns a run with these losses, one for each iteration from 1 on.
func losses(values ...float64) Run {
	var r Run
	for i, v := range values {
		r.Iterations = append(r.Iterations, Iteration{N: i + 1, Loss: &v})
	}
	return r
}

func repeated(v float64, n int) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = v
	}
	return all
}

// A finding needs a minimum number of iterations: with one iteration less there is none.
func TestWhatIsFoundLastsLongEnough(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for name, tt := range map[string]struct {
		check func(Run) (Finding, bool)
		run   Run
		at    int // 0 for no finding
	}{
		"three losses that are NaN":             {notFinite, losses(append(repeated(2, 20), nan, nan, nan)...), 21},
		"three in a short run":                  {notFinite, losses(nan, inf, nan), 1},
		"two losses that are NaN":               {notFinite, losses(append(repeated(2, 20), nan, nan)...), 0},
		"NaN that has ended":                    {notFinite, losses(append(append(repeated(2, 20), nan, nan, nan), 2)...), 0},
		"a loss of half as much again":          {lossSpike, losses(append(repeated(2, 20), repeated(3, 5)...)...), 21},
		"a loss a little below that":            {lossSpike, losses(append(repeated(2, 20), repeated(2.99, 5)...)...), 0},
		"a jump of four iterations":             {lossSpike, losses(append(repeated(2, 21), repeated(9, 4)...)...), 0},
		"a jump in a run of twenty":             {lossSpike, losses(append(repeated(2, 15), repeated(9, 5)...)...), 16},
		"a jump in a run of nineteen":           {lossSpike, losses(append(repeated(2, 14), repeated(9, 5)...)...), 0},
		"a jump from a loss of nothing":         {lossSpike, losses(append(repeated(0, 20), repeated(9, 5)...)...), 0},
		"a jump that only the last 200 tell of": {lossSpike, losses(append(append(repeated(9, 300), repeated(2, 200)...), repeated(9, 5)...)...), 501},
	} {
		f, ok := tt.check(tt.run)
		require.Equal(t, tt.at > 0, ok, name)
		if ok {
			require.Equal(t, tt.at, f.Iteration, name)
			require.Contains(t, f.What.EN, "iteration", name)
		}
	}
}

func TestLinesThatAreFlatAreKnown(t *testing.T) {
	require.True(t, flat([]Run{losses(2, 2, 2)}, Loss))
	require.False(t, flat([]Run{losses(2, 2, 2.1)}, Loss))
	require.False(t, flat([]Run{losses(2, 2), losses(3, 3)}, Loss), "of all runs together")
	require.True(t, flat([]Run{losses()}, Loss))
}

// A TensorProto holds floats or doubles in one of several fields.
func TestScalarsOfTensorsAreRead(t *testing.T) {
	f32 := binary.LittleEndian.AppendUint32(nil, math.Float32bits(1.5))
	f64 := binary.LittleEndian.AppendUint64(nil, math.Float64bits(2.5))
	field := func(n int, kind byte, payload ...byte) []byte { return append([]byte{byte(n)<<3 | kind}, payload...) }
	sized := func(n int, b []byte) []byte { return field(n, 2, append([]byte{byte(len(b))}, b...)...) }
	dtype := func(v byte) []byte { return field(1, 0, v) }
	join := func(all ...[]byte) (out []byte) {
		for _, b := range all {
			out = append(out, b...)
		}
		return out
	}
	for name, tt := range map[string]struct {
		proto []byte
		value float64
		ok    bool
	}{
		"a float":                 {field(5, 5, f32...), 1.5, true},
		"packed floats":           {sized(5, join(f32, f64)), 1.5, true},
		"a double":                {field(6, 1, f64...), 2.5, true},
		"packed doubles":          {sized(6, f64), 2.5, true},
		"the content of a float":  {join(dtype(1), sized(4, f32)), 1.5, true},
		"the content of a double": {join(dtype(2), sized(4, f64)), 2.5, true},
		"a float cut short":       {join(dtype(1), sized(4, f32[:3])), 0, false},
		"a double cut short":      {join(dtype(2), sized(4, f64[:7])), 0, false},
		"packed and cut short":    {sized(5, f32[:3]), 0, false},
		"doubles cut short":       {sized(6, f64[:7]), 0, false},
		"another type":            {join(dtype(3), sized(4, f64)), 0, false},
		"nothing":                 {nil, 0, false},
	} {
		value, ok := tensorScalar(tt.proto)
		require.Equal(t, tt.ok, ok, name)
		require.Equal(t, tt.value, value, name)
	}
}
