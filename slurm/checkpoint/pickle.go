package checkpoint

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// A pickle names classes and has them called; this reader calls nothing. What a
// class would have made is an Object that keeps the class's name, what it was called
// with and its state. The instructions are those of Python's pickletools.

// Bounds on what a pickle may build: the index of a checkpoint over some ten
// thousand ranks is below them.
const (
	maxItems  = 64 << 20
	maxString = 16 << 20
)

var errPickle = errors.New("not a pickle that can be read")

type (
	// A list is a list, a set or a tuple.
	list struct{ items []any }
	// A dict keeps its pairs in order: its keys may be objects.
	dict struct{ keys, values []any }
	// A class is its module and name.
	class string
	// An object is what a class was called with, and the state it was given.
	object struct {
		class class
		args  []any
		state any
	}
	// A stored is something kept outside the pickle, such as a tensor's storage.
	stored struct{ id any }
	mark   struct{}
)

// get is the value of a dict's key that is a string; nil where there is none.
func (d *dict) get(key string) any {
	for i, k := range d.keys {
		if k == key {
			return d.values[i]
		}
	}
	return nil
}

// attribute is an object's attribute, or a dict's value.
func attribute(v any, name string) any {
	switch v := v.(type) {
	case *dict:
		return v.get(name)
	case *object:
		state := v.state
		if pair, ok := state.(*list); ok && len(pair.items) == 2 { // with slots
			state = pair.items[0]
		}
		if d, ok := state.(*dict); ok {
			return d.get(name)
		}
	}
	return nil
}

type machine struct {
	in    *bufio.Reader
	stack []any
	memo  map[int]any
	items int
}

// unpickle reads one value without ever executing anything.
func unpickle(in io.Reader) (any, error) {
	m := &machine{in: bufio.NewReaderSize(in, 1<<16), memo: map[int]any{}}
	for {
		op, err := m.in.ReadByte()
		if err != nil {
			return nil, fmt.Errorf("%w: it ends early", errPickle)
		}
		if op == '.' {
			return m.pop()
		}
		if m.items++; m.items > maxItems {
			return nil, fmt.Errorf("%w: more than %d items", errPickle, maxItems)
		}
		if err := m.step(op); err != nil {
			return nil, err
		}
	}
}

func (m *machine) step(op byte) error {
	switch op {
	case 0x80: // PROTO
		_, err := m.in.Discard(1)
		return err
	case 0x95: // FRAME
		_, err := m.in.Discard(8)
		return err
	case '(':
		m.push(mark{})
	case 'N':
		m.push(nil)
	case 0x88, 0x89:
		m.push(op == 0x88)
	case ']', 0x8f, ')': // EMPTY_LIST, EMPTY_SET, EMPTY_TUPLE
		m.push(&list{})
	case '}':
		m.push(&dict{})
	case 'I', 'L', 'F':
		return m.line(op)
	case 'J', 'K', 'M', 'G', 0x8a, 0x8b:
		return m.number(op)
	case 'X', 0x8c, 0x8d, 'B', 'C', 0x8e, 0x96, 'U', 'T':
		return m.text(op)
	case 'c', 0x93: // GLOBAL, STACK_GLOBAL
		return m.name(op)
	case 'R', 0x81, 0x92, 'b', 'Q': // REDUCE, NEWOBJ, NEWOBJ_EX, BUILD, BINPERSID
		return m.made(op)
	case 'p', 'q', 'r', 0x94, 'g', 'h', 'j':
		return m.remember(op)
	case 't', 0x85, 0x86, 0x87, 'l', 'd', 0x91:
		return m.collect(op)
	case 'a', 'e', 's', 'u', 0x90:
		return m.fill(op)
	case '0':
		_, err := m.pop()
		return err
	case '1':
		_, err := m.popMark()
		return err
	case '2':
		if len(m.stack) == 0 {
			return errPickle
		}
		m.push(m.stack[len(m.stack)-1])
	default:
		return fmt.Errorf("%w: instruction 0x%02x", errPickle, op)
	}
	return nil
}

func (m *machine) push(v any) { m.stack = append(m.stack, v) }

func (m *machine) pop() (any, error) {
	if len(m.stack) == 0 {
		return nil, errPickle
	}
	v := m.stack[len(m.stack)-1]
	m.stack = m.stack[:len(m.stack)-1]
	return v, nil
}

func (m *machine) popMark() ([]any, error) {
	for i := len(m.stack) - 1; i >= 0; i-- {
		if _, ok := m.stack[i].(mark); ok {
			items := append([]any(nil), m.stack[i+1:]...)
			m.stack = m.stack[:i]
			return items, nil
		}
	}
	return nil, errPickle
}

func (m *machine) bytes(n uint64) ([]byte, error) {
	if n > maxString {
		return nil, fmt.Errorf("%w: a string of %d bytes", errPickle, n)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(m.in, b)
	return b, err
}

// little is a number of so many bytes, the lowest first.
func (m *machine) little(size uint64) (n uint64, err error) {
	b, err := m.bytes(size)
	for i := len(b) - 1; i >= 0; i-- {
		n = n<<8 | uint64(b[i])
	}
	return n, err
}

func (m *machine) line(op byte) error {
	text, err := m.in.ReadSlice('\n')
	if err != nil || len(text) > 4096 {
		return errPickle
	}
	word := strings.TrimSuffix(string(text[:len(text)-1]), "L")
	if op == 'F' {
		f, err := strconv.ParseFloat(word, 64)
		m.push(f)
		return err
	}
	if op == 'I' && (word == "00" || word == "01") {
		m.push(word == "01")
		return nil
	}
	n, err := strconv.ParseInt(word, 10, 64)
	m.push(n)
	return err
}

func (m *machine) number(op byte) error {
	switch op {
	case 'G':
		b, err := m.bytes(8)
		if err == nil {
			m.push(math.Float64frombits(binary.BigEndian.Uint64(b)))
		}
		return err
	case 0x8a, 0x8b: // LONG1, LONG4: two's complement
		size, err := m.little(map[byte]uint64{0x8a: 1, 0x8b: 4}[op])
		if err != nil {
			return err
		}
		long, err := m.bytes(size)
		v := new(big.Int)
		for i := len(long) - 1; i >= 0; i-- {
			v.Or(v.Lsh(v, 8), big.NewInt(int64(long[i])))
		}
		if n := len(long); n > 0 && long[n-1]&0x80 != 0 {
			v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*n)))
		}
		m.push(v.Int64())
		return err
	}
	n, err := m.little(map[byte]uint64{'J': 4, 'K': 1, 'M': 2}[op])
	if op == 'J' {
		m.push(int64(int32(uint32(n))))
	} else {
		m.push(int64(n))
	}
	return err
}

func (m *machine) text(op byte) error {
	n, err := m.little(map[byte]uint64{'X': 4, 0x8c: 1, 0x8d: 8, 'B': 4, 'C': 1, 0x8e: 8, 0x96: 8, 'U': 1, 'T': 4}[op])
	if err != nil {
		return err
	}
	s, err := m.bytes(n)
	m.push(string(s))
	return err
}

func (m *machine) name(op byte) error {
	var parts [2]string
	if op == 'c' {
		for i := range parts {
			line, err := m.in.ReadSlice('\n')
			if err != nil || len(line) > 512 {
				return errPickle
			}
			parts[i] = string(line[:len(line)-1])
		}
	} else {
		for i := 1; i >= 0; i-- {
			v, err := m.pop()
			if err != nil {
				return err
			}
			parts[i], _ = v.(string)
		}
	}
	m.push(class(parts[0] + "." + parts[1]))
	return nil
}

// made stands for what a class would have made.
func (m *machine) made(op byte) error {
	last, err := m.pop()
	if err != nil {
		return err
	}
	switch op {
	case 'Q':
		m.push(stored{last})
		return nil
	case 'b':
		if len(m.stack) == 0 {
			return errPickle
		}
		if o, ok := m.stack[len(m.stack)-1].(*object); ok {
			o.state = last
		}
		return nil
	case 0x92: // its keywords are not needed
		if last, err = m.pop(); err != nil {
			return err
		}
	}
	called, err := m.pop()
	if err != nil {
		return err
	}
	o := &object{}
	o.class, _ = called.(class)
	if args, ok := last.(*list); ok {
		o.args = args.items
	}
	if o.class == "collections.OrderedDict" && len(o.args) == 0 {
		m.push(&dict{})
		return nil
	}
	m.push(o)
	return nil
}

func (m *machine) remember(op byte) error {
	key := len(m.memo)
	switch op {
	case 'p', 'g':
		text, err := m.in.ReadSlice('\n')
		if err != nil {
			return errPickle
		}
		if key, err = strconv.Atoi(string(text[:len(text)-1])); err != nil {
			return errPickle
		}
	case 'q', 'h', 'r', 'j':
		n, err := m.little(map[byte]uint64{'q': 1, 'r': 4, 'h': 1, 'j': 4}[op])
		if err != nil {
			return err
		}
		key = int(n)
	}
	if op == 'g' || op == 'h' || op == 'j' {
		v, ok := m.memo[key]
		if !ok {
			return errPickle
		}
		m.push(v)
		return nil
	}
	if len(m.stack) == 0 {
		return errPickle
	}
	m.memo[key] = m.stack[len(m.stack)-1]
	return nil
}

func (m *machine) collect(op byte) error {
	if op >= 0x85 && op <= 0x87 {
		n := int(op-0x85) + 1
		if len(m.stack) < n {
			return errPickle
		}
		items := append([]any(nil), m.stack[len(m.stack)-n:]...)
		m.stack = m.stack[:len(m.stack)-n]
		m.push(&list{items})
		return nil
	}
	items, err := m.popMark()
	if err != nil {
		return err
	}
	if op == 'd' {
		d := &dict{}
		m.push(d)
		return d.add(items)
	}
	m.push(&list{items})
	return nil
}

func (d *dict) add(items []any) error {
	if len(items)%2 != 0 {
		return errPickle
	}
	for i := 0; i < len(items); i += 2 {
		d.keys, d.values = append(d.keys, items[i]), append(d.values, items[i+1])
	}
	return nil
}

// fill adds items to the list or dictionary below them.
func (m *machine) fill(op byte) error {
	var items []any
	var err error
	if n := map[byte]int{'a': 1, 's': 2}[op]; n > 0 {
		if len(m.stack) < n+1 {
			return errPickle
		}
		items = append(items, m.stack[len(m.stack)-n:]...)
		m.stack = m.stack[:len(m.stack)-n]
	} else if items, err = m.popMark(); err != nil {
		return err
	}
	if len(m.stack) == 0 {
		return errPickle
	}
	switch to := m.stack[len(m.stack)-1].(type) {
	case *list:
		to.items = append(to.items, items...)
	case *dict:
		return to.add(items)
	case *object: // a subclass of a list or dict; what it holds is not needed
	default:
		return errPickle
	}
	return nil
}
