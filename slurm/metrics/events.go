package metrics

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"math"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// maxRecord bounds one record of an event file; images and graphs are skipped.
const maxRecord = 16 << 20

// tags maps the names that Megatron gives its TensorBoard scalars (megatron/training/training.py) to
// the names in its log lines.
var tags = map[string]string{
	"lm loss": "lm loss", "learning-rate": "learning rate", "batch-size": "global batch size", "grad-norm": "grad norm", "loss-scale": "loss scale",
	"throughput": "throughput per GPU (TFLOP/s/GPU)", "iteration-time": "elapsed time per iteration (ms)",
}

// events reads an event file: a sequence of length, checksum, record, checksum, each record an Event
// message (tensorflow/core/util/event.proto). An incomplete record ends the file: the run may still be
// writing it.
func (r *reader) events(ctx context.Context, in io.Reader) error {
	b := bufio.NewReaderSize(in, 64<<10)
	byStep := map[int]*Iteration{}
	var order []int
	var head [12]byte
	for ctx.Err() == nil {
		if _, err := io.ReadFull(b, head[:]); err != nil {
			break
		}
		n := binary.LittleEndian.Uint64(head[:8])
		if n > maxRecord {
			if _, err := b.Discard(int(min(n, math.MaxInt32))); err != nil {
				break
			}
		} else {
			record := make([]byte, n)
			if _, err := io.ReadFull(b, record); err != nil {
				break
			}
			readEvent(record, func(step int, wall float64, tag string, v float64) {
				it := byStep[step]
				if it == nil {
					it = &Iteration{N: step, Time: new(time.Unix(0, int64(wall*1e9)).UTC())}
					byStep[step] = it
					order = append(order, step)
				}
				switch name, known := tags[tag]; {
				case tag == "world-size":
					r.run.WorldSize = int(v)
				case tag == "iteration-time":
					it.set(name, v*1000)
				case known:
					it.set(name, v)
				case strings.HasSuffix(tag, "lm loss validation"):
					r.run.Validation = append(r.run.Validation, Point{step, v})
				case !strings.Contains(tag, " vs samples"):
					it.set(tag, v)
				}
			})
		}
		if _, err := b.Discard(4); err != nil {
			break
		}
	}
	for _, step := range order {
		if it := byStep[step]; it.Loss != nil || it.ElapsedMS != nil || it.TFLOPs != nil || it.GradNorm != nil || it.LearningRate != nil {
			r.keep(*it)
		}
	}
	return ctx.Err()
}

// readEvent calls found for each scalar of an Event message.
func readEvent(record []byte, found func(step int, wall float64, tag string, v float64)) {
	var step int
	var wall float64
	var summary []byte
	fields(record, func(n protowire.Number, kind protowire.Type, v uint64, b []byte) {
		switch {
		case n == 1 && kind == protowire.Fixed64Type:
			wall = math.Float64frombits(v)
		case n == 2 && kind == protowire.VarintType:
			step = int(int64(v))
		case n == 5 && kind == protowire.BytesType:
			summary = b
		}
	})
	fields(summary, func(n protowire.Number, kind protowire.Type, _ uint64, b []byte) {
		if n != 1 || kind != protowire.BytesType {
			return
		}
		tag, value, ok := "", 0.0, false
		fields(b, func(n protowire.Number, kind protowire.Type, v uint64, b []byte) {
			switch {
			case n == 1 && kind == protowire.BytesType:
				tag = string(b)
			case n == 2 && kind == protowire.Fixed32Type:
				value, ok = float64(math.Float32frombits(uint32(v))), true
			case n == 8 && kind == protowire.BytesType:
				if t, isScalar := tensorScalar(b); isScalar {
					value, ok = t, true
				}
			}
		})
		if ok && step >= 0 {
			found(step, wall, tag, value)
		}
	})
}

// tensorScalar reads the first value of a TensorProto of floats or doubles.
func tensorScalar(b []byte) (value float64, ok bool) {
	var dtype uint64
	var content []byte
	fields(b, func(n protowire.Number, kind protowire.Type, v uint64, b []byte) {
		switch {
		case n == 1 && kind == protowire.VarintType:
			dtype = v
		case n == 4 && kind == protowire.BytesType:
			content = b
		case n == 5 && kind == protowire.Fixed32Type:
			value, ok = float64(math.Float32frombits(uint32(v))), true
		case n == 5 && kind == protowire.BytesType && len(b) >= 4:
			value, ok = float64(math.Float32frombits(binary.LittleEndian.Uint32(b))), true
		case n == 6 && kind == protowire.Fixed64Type:
			value, ok = math.Float64frombits(v), true
		case n == 6 && kind == protowire.BytesType && len(b) >= 8:
			value, ok = math.Float64frombits(binary.LittleEndian.Uint64(b)), true
		}
	})
	switch {
	case ok:
	case dtype == 1 && len(content) >= 4: // DT_FLOAT
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(content))), true
	case dtype == 2 && len(content) >= 8: // DT_DOUBLE
		return math.Float64frombits(binary.LittleEndian.Uint64(content)), true
	}
	return value, ok
}

// fields calls use for each field of a protocol buffer message, with the field's number, its wire type,
// and its value or bytes.
func fields(b []byte, use func(n protowire.Number, kind protowire.Type, v uint64, b []byte)) {
	for len(b) > 0 {
		number, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return
		}
		b = b[size:]
		var v uint64
		var small uint32
		var body []byte
		switch kind {
		case protowire.VarintType:
			v, size = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			v, size = protowire.ConsumeFixed64(b)
		case protowire.Fixed32Type:
			small, size = protowire.ConsumeFixed32(b)
			v = uint64(small)
		case protowire.BytesType:
			body, size = protowire.ConsumeBytes(b)
		default:
			return
		}
		if size < 0 {
			return
		}
		use(number, kind, v, body)
		b = b[size:]
	}
}
