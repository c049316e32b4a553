// Package pickle reads Python pickles without Python, and calls nothing that a pickle
// names.
package pickle

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// A pickle contains names of classes and instructions to call them; this reader calls
// nothing. In place of the result of a call it returns an Object with the class's name,
// the arguments and the state. The instructions are those of Python's pickletools.

// A Reader reads pickles within bounds.
type Reader struct {
	Items  int    // largest number of instructions
	String uint64 // largest number of bytes of one string
	// Plain accepts only dictionaries, lists, strings and numbers. It replaces a call
	// by the call's first argument, because PyTorch writes its typed lists as calls.
	Plain bool
}

// Err is wrapped by every error of this package, except those of the input itself.
var Err = errors.New("not a pickle that can be read")

// plain are the instructions that Plain accepts.
const plain = "\x80\x95(N\x88\x89}])JKMG\x8aIX\x8c\x8dBCUTc\x93R\x81qr\x94hjt\x85\x86\x87laesu0"

type (
	// A List is a list, a set or a tuple.
	List struct {
		Items []any
		fixed bool // the list is a tuple, which cannot grow
	}
	// A Dict keeps its pairs in order, because its keys may be objects.
	Dict struct{ Keys, Values []any }
	// A Class is a class's module and name, joined by a dot.
	Class string
	// An Object holds the arguments of a call to a class, and the state that the new
	// object was given.
	Object struct {
		Class Class
		Args  []any
		State any
	}
	// A Stored is the persistent id of something outside the pickle, such as a tensor's
	// storage.
	Stored struct{ ID any }
	mark   struct{}
)

// Get returns the value of the string key; nil where there is none.
func (d *Dict) Get(key string) any {
	for i, k := range slices.Backward(d.Keys) {
		if k == key {
			return d.Values[i]
		}
	}
	return nil
}

// Attribute returns an attribute of an object or a value of a dictionary; nil where
// there is none.
func Attribute(v any, name string) any {
	switch v := v.(type) {
	case *Dict:
		return v.Get(name)
	case *Object:
		state := v.State
		if pair, ok := state.(*List); ok && len(pair.Items) == 2 { // with slots
			state = pair.Items[0]
		}
		if d, ok := state.(*Dict); ok {
			return d.Get(name)
		}
	}
	return nil
}

// A machine carries out the instructions of a pickle on a stack.
type machine struct {
	Reader
	in    *bufio.Reader
	stack []any
	memo  map[int]any
}

// Read reads one value.
func (r Reader) Read(in io.Reader) (any, error) {
	m := &machine{Reader: r, in: bufio.NewReaderSize(in, 1<<16), memo: map[int]any{}}
	for items := 1; ; items++ {
		op, err := m.in.ReadByte()
		if err != nil {
			return nil, fmt.Errorf("%w: it ends early", Err)
		}
		if op == '.' {
			return m.pop()
		}
		if items > r.Items {
			return nil, fmt.Errorf("%w: more than %d items", Err, r.Items)
		}
		if r.Plain && strings.IndexByte(plain, op) < 0 {
			return nil, fmt.Errorf("%w: instruction 0x%02x", Err, op)
		}
		if err := m.execute(op); err != nil {
			return nil, err
		}
	}
}

// execute carries out one instruction.
func (m *machine) execute(op byte) error {
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
		m.push(&List{fixed: op == ')'})
	case '}':
		m.push(&Dict{})
	case 'I', 'L', 'F':
		return m.textNumber(op)
	case 'J', 'K', 'M', 'G', 0x8a, 0x8b:
		return m.number(op)
	case 'X', 0x8c, 0x8d, 'B', 'C', 0x8e, 0x96, 'U', 'T':
		return m.text(op)
	case 'c', 0x93: // GLOBAL, STACK_GLOBAL
		return m.class(op)
	case 'R', 0x81, 0x92, 'b', 'Q': // REDUCE, NEWOBJ, NEWOBJ_EX, BUILD, BINPERSID
		return m.construct(op)
	case 'p', 'q', 'r', 0x94, 'g', 'h', 'j':
		return m.memoize(op)
	case 't', 0x85, 0x86, 0x87, 'l', 'd', 0x91:
		return m.collect(op)
	case 'a', 'e', 's', 'u', 0x90:
		return m.extend(op)
	case '0':
		_, err := m.pop()
		return err
	case '1':
		_, err := m.popMark()
		return err
	case '2':
		if len(m.stack) == 0 {
			return Err
		}
		m.push(m.stack[len(m.stack)-1])
	default:
		return fmt.Errorf("%w: instruction 0x%02x", Err, op)
	}
	return nil
}

func (m *machine) push(v any) { m.stack = append(m.stack, v) }

func (m *machine) pop() (any, error) {
	if len(m.stack) == 0 {
		return nil, Err
	}
	v := m.stack[len(m.stack)-1]
	m.stack = m.stack[:len(m.stack)-1]
	return v, nil
}

// popMark removes the items above the topmost mark, and the mark, and returns the items.
func (m *machine) popMark() ([]any, error) {
	for i, v := range slices.Backward(m.stack) {
		if _, ok := v.(mark); ok {
			items := slices.Clone(m.stack[i+1:])
			m.stack = m.stack[:i]
			return items, nil
		}
	}
	return nil, Err
}

// bytes reads n bytes of the input.
func (m *machine) bytes(n uint64) ([]byte, error) {
	if n > m.String {
		return nil, fmt.Errorf("%w: a string of %d bytes", Err, n)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(m.in, b)
	return b, err
}

// littleEndian reads an unsigned number of size bytes, the lowest byte first.
func (m *machine) littleEndian(size uint64) (n uint64, err error) {
	b, err := m.bytes(size)
	for _, digit := range slices.Backward(b) {
		n = n<<8 | uint64(digit)
	}
	return n, err
}

// textNumber pushes a number that is written as text on a line of its own.
func (m *machine) textNumber(op byte) error {
	text, err := m.in.ReadSlice('\n')
	if err != nil || len(text) > 4096 {
		return Err
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

// number pushes a number that is written as bytes.
func (m *machine) number(op byte) error {
	switch op {
	case 'G':
		b, err := m.bytes(8)
		if err == nil {
			m.push(math.Float64frombits(binary.BigEndian.Uint64(b)))
		}
		return err
	case 0x8a, 0x8b: // LONG1, LONG4: two's complement
		size, err := m.littleEndian(map[byte]uint64{0x8a: 1, 0x8b: 4}[op])
		if err != nil {
			return err
		}
		long, err := m.bytes(size)
		slices.Reverse(long) // the highest byte first
		v := new(big.Int).SetBytes(long)
		if n := len(long); n > 0 && long[0]&0x80 != 0 {
			v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*n)))
		}
		m.push(v.Int64())
		return err
	}
	n, err := m.littleEndian(map[byte]uint64{'J': 4, 'K': 1, 'M': 2}[op])
	if op == 'J' {
		m.push(int64(int32(uint32(n))))
	} else {
		m.push(int64(n))
	}
	return err
}

// text pushes a string or bytes.
func (m *machine) text(op byte) error {
	n, err := m.littleEndian(map[byte]uint64{'X': 4, 0x8c: 1, 0x8d: 8, 'B': 4, 'C': 1, 0x8e: 8, 0x96: 8, 'U': 1, 'T': 4}[op])
	if err != nil {
		return err
	}
	s, err := m.bytes(n)
	m.push(string(s))
	return err
}

// class pushes the name of a class.
func (m *machine) class(op byte) error {
	var parts [2]string
	if op == 'c' {
		for i := range parts {
			line, err := m.in.ReadSlice('\n')
			if err != nil || len(line) > 512 {
				return Err
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
	m.push(Class(parts[0] + "." + parts[1]))
	return nil
}

// construct pushes an Object, or its replacement, for the result of a call, or gives
// the topmost Object its state.
func (m *machine) construct(op byte) error {
	last, err := m.pop()
	if err != nil {
		return err
	}
	switch op {
	case 'Q':
		m.push(Stored{last})
		return nil
	case 'b':
		if len(m.stack) == 0 {
			return Err
		}
		if o, ok := m.stack[len(m.stack)-1].(*Object); ok {
			o.State = last
		}
		return nil
	case 0x92: // drop the keyword arguments
		if last, err = m.pop(); err != nil {
			return err
		}
	}
	called, err := m.pop()
	if err != nil {
		return err
	}
	if m.Plain {
		m.push(firstOf(last))
		return nil
	}
	o := &Object{}
	o.Class, _ = called.(Class)
	if args, ok := last.(*List); ok {
		o.Args = args.Items
	}
	if o.Class == "collections.OrderedDict" && len(o.Args) == 0 {
		m.push(&Dict{})
		return nil
	}
	m.push(o)
	return nil
}

// firstOf returns a tuple's first item; nil where v is no tuple or is empty.
func firstOf(v any) any {
	if args, ok := v.(*List); ok && args.fixed && len(args.Items) > 0 {
		return args.Items[0]
	}
	return nil
}

// memoize stores the topmost value in the memo, or pushes a value from the memo.
func (m *machine) memoize(op byte) error {
	key := len(m.memo)
	switch op {
	case 'p', 'g':
		text, err := m.in.ReadSlice('\n')
		if err != nil {
			return Err
		}
		if key, err = strconv.Atoi(string(text[:len(text)-1])); err != nil {
			return Err
		}
	case 'q', 'h', 'r', 'j':
		n, err := m.littleEndian(map[byte]uint64{'q': 1, 'r': 4, 'h': 1, 'j': 4}[op])
		if err != nil {
			return err
		}
		key = int(n)
	}
	if op == 'g' || op == 'h' || op == 'j' {
		v, ok := m.memo[key]
		if !ok {
			return Err
		}
		m.push(v)
		return nil
	}
	if len(m.stack) == 0 {
		return Err
	}
	m.memo[key] = m.stack[len(m.stack)-1]
	return nil
}

// collect replaces the topmost items by a tuple, list, set or dictionary of them.
func (m *machine) collect(op byte) error {
	if op >= 0x85 && op <= 0x87 {
		n := int(op-0x85) + 1
		if len(m.stack) < n {
			return Err
		}
		items := slices.Clone(m.stack[len(m.stack)-n:])
		m.stack = m.stack[:len(m.stack)-n]
		m.push(&List{items, true})
		return nil
	}
	items, err := m.popMark()
	if err != nil {
		return err
	}
	if op == 'd' {
		d := &Dict{}
		m.push(d)
		return d.add(items)
	}
	m.push(&List{items, op == 't'})
	return nil
}

// add appends pairs of keys and values.
func (d *Dict) add(items []any) error {
	if len(items)%2 != 0 {
		return Err
	}
	for i := 0; i < len(items); i += 2 {
		d.Keys, d.Values = append(d.Keys, items[i]), append(d.Values, items[i+1])
	}
	return nil
}

// extend adds the topmost items to the list or dictionary below them.
func (m *machine) extend(op byte) error {
	var items []any
	var err error
	if n := map[byte]int{'a': 1, 's': 2}[op]; n > 0 {
		if len(m.stack) < n+1 {
			return Err
		}
		items = slices.Clone(m.stack[len(m.stack)-n:])
		m.stack = m.stack[:len(m.stack)-n]
	} else if items, err = m.popMark(); err != nil {
		return err
	}
	if len(m.stack) == 0 {
		return Err
	}
	pairs := op == 's' || op == 'u'
	switch to := m.stack[len(m.stack)-1].(type) {
	case *List:
		if !pairs && !to.fixed {
			to.Items = append(to.Items, items...)
			return nil
		}
	case *Dict:
		if pairs {
			return to.add(items)
		}
	case *Object: // a subclass of a list or dictionary, whose content nobody needs
		return nil
	}
	return Err
}
