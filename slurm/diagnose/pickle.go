package diagnose

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
)

// A pickle can name any function and have it called; this reader builds
// dictionaries, lists, tuples, strings and numbers, and nothing else. A named
// function becomes an inert mark, and a call yields the call's first argument,
// which is how PyTorch writes its typed lists. Every other instruction is an
// error. The instructions are those of Python's pickletools.

// Bounds on what a pickle may build.
const (
	maxPickleItems  = 4 << 20
	maxPickleString = 1 << 20
)

var errPickle = errors.New("not a pickle of plain values")

type (
	pyList  struct{ items []any }
	pyTuple []any
	pyDict  map[string]any
	pyMark  struct{}
	pyName  struct{}
)

type unpickler struct {
	in    *bufio.Reader
	stack []any
	memo  map[int]any
	items int
}

// unpickle reads one pickled value without ever executing anything.
func unpickle(in io.Reader) (v any, err error) {
	u := &unpickler{in: bufio.NewReader(in), memo: map[int]any{}}
	for {
		op, err := u.in.ReadByte()
		if err != nil {
			return nil, fmt.Errorf("%w: it ends early", errPickle)
		}
		if op == '.' {
			return u.pop()
		}
		if u.items++; u.items > maxPickleItems {
			return nil, fmt.Errorf("%w: more than %d items", errPickle, maxPickleItems)
		}
		if err := u.step(op); err != nil {
			return nil, err
		}
	}
}

// step executes one instruction.
func (u *unpickler) step(op byte) error {
	switch op {
	case 0x80: // PROTO
		_, err := u.in.ReadByte()
		return err
	case 0x95: // FRAME
		_, err := u.in.Discard(8)
		return err
	case '(':
		u.push(pyMark{})
	case 'N':
		u.push(nil)
	case 0x88:
		u.push(true)
	case 0x89:
		u.push(false)
	case '}':
		u.push(pyDict{})
	case ']':
		u.push(&pyList{})
	case ')':
		u.push(pyTuple{})
	case 'J', 'K', 'M', 'G', 0x8a, 'I':
		return u.number(op)
	case 'X', 0x8c, 0x8d, 'B', 'C', 'U', 'T':
		return u.text(op)
	case 'c', 0x93: // GLOBAL, STACK_GLOBAL
		return u.name(op)
	case 'R', 0x81: // REDUCE, NEWOBJ
		return u.call()
	case 'q', 'r', 0x94, 'h', 'j':
		return u.remember(op)
	case 't', 0x85, 0x86, 0x87, 'l':
		return u.collect(op)
	case 'a', 'e', 's', 'u':
		return u.fill(op)
	case '0':
		_, err := u.pop()
		return err
	default:
		return fmt.Errorf("%w: instruction 0x%02x", errPickle, op)
	}
	return nil
}

func (u *unpickler) push(v any) { u.stack = append(u.stack, v) }

func (u *unpickler) pop() (any, error) {
	if len(u.stack) == 0 {
		return nil, errPickle
	}
	v := u.stack[len(u.stack)-1]
	u.stack = u.stack[:len(u.stack)-1]
	return v, nil
}

// popMark takes everything above the last mark, and the mark.
func (u *unpickler) popMark() ([]any, error) {
	for i := len(u.stack) - 1; i >= 0; i-- {
		if _, ok := u.stack[i].(pyMark); ok {
			items := append([]any(nil), u.stack[i+1:]...)
			u.stack = u.stack[:i]
			return items, nil
		}
	}
	return nil, errPickle
}

func (u *unpickler) bytes(n int) ([]byte, error) {
	if n < 0 || n > maxPickleString {
		return nil, fmt.Errorf("%w: a string of %d bytes", errPickle, n)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(u.in, b)
	return b, err
}

func (u *unpickler) number(op byte) error {
	size := map[byte]int{'J': 4, 'K': 1, 'M': 2, 'G': 8, 0x8a: 1}[op]
	if op == 'I' {
		line, err := u.in.ReadString('\n')
		if err != nil || len(line) > 32 {
			return errPickle
		}
		n, err := strconv.ParseInt(line[:len(line)-1], 10, 64)
		u.push(n)
		return err
	}
	b, err := u.bytes(size)
	if err != nil {
		return err
	}
	switch op {
	case 'J':
		u.push(int64(int32(binary.LittleEndian.Uint32(b))))
	case 'K':
		u.push(int64(b[0]))
	case 'M':
		u.push(int64(binary.LittleEndian.Uint16(b)))
	case 'G':
		u.push(math.Float64frombits(binary.BigEndian.Uint64(b)))
	case 0x8a: // LONG1: little endian, two's complement
		long, err := u.bytes(int(b[0]))
		if err != nil {
			return err
		}
		v := new(big.Int)
		for i := len(long) - 1; i >= 0; i-- {
			v.Or(v.Lsh(v, 8), big.NewInt(int64(long[i])))
		}
		if n := len(long); n > 0 && long[n-1]&0x80 != 0 {
			v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*n)))
		}
		u.push(v.Int64())
	}
	return nil
}

func (u *unpickler) text(op byte) error {
	size := map[byte]int{'X': 4, 0x8c: 1, 0x8d: 8, 'B': 4, 'C': 1, 'U': 1, 'T': 4}[op]
	b, err := u.bytes(size)
	if err != nil {
		return err
	}
	n := uint64(0)
	for i := size - 1; i >= 0; i-- {
		n = n<<8 | uint64(b[i])
	}
	if n > maxPickleString {
		return fmt.Errorf("%w: a string of %d bytes", errPickle, n)
	}
	s, err := u.bytes(int(n))
	u.push(string(s))
	return err
}

// name reads the name of a function or class, and forgets it.
func (u *unpickler) name(op byte) error {
	if op == 'c' {
		for range 2 {
			line, err := u.in.ReadSlice('\n')
			if err != nil || len(line) > 256 {
				return errPickle
			}
		}
	} else {
		for range 2 {
			if _, err := u.pop(); err != nil {
				return err
			}
		}
	}
	u.push(pyName{})
	return nil
}

// call stands for a call: its value is its first argument.
func (u *unpickler) call() error {
	args, err := u.pop()
	if err != nil {
		return err
	}
	if _, err := u.pop(); err != nil {
		return err
	}
	if t, ok := args.(pyTuple); ok && len(t) > 0 {
		u.push(t[0])
	} else {
		u.push(nil)
	}
	return nil
}

func (u *unpickler) remember(op byte) error {
	key := len(u.memo)
	if op != 0x94 {
		size := map[byte]int{'q': 1, 'r': 4, 'h': 1, 'j': 4}[op]
		b, err := u.bytes(size)
		if err != nil {
			return err
		}
		key = 0
		for i := size - 1; i >= 0; i-- {
			key = key<<8 | int(b[i])
		}
	}
	if op == 'h' || op == 'j' {
		v, ok := u.memo[key]
		if !ok {
			return errPickle
		}
		u.push(v)
		return nil
	}
	if len(u.stack) == 0 {
		return errPickle
	}
	u.memo[key] = u.stack[len(u.stack)-1]
	return nil
}

func (u *unpickler) collect(op byte) error {
	var items []any
	var err error
	switch op {
	case 't', 'l':
		items, err = u.popMark()
	default:
		n := int(op-0x85) + 1
		if len(u.stack) < n {
			return errPickle
		}
		items = append(items, u.stack[len(u.stack)-n:]...)
		u.stack = u.stack[:len(u.stack)-n]
	}
	if op == 'l' {
		u.push(&pyList{items})
	} else {
		u.push(pyTuple(items))
	}
	return err
}

// fill adds items to the list or dictionary below them.
func (u *unpickler) fill(op byte) error {
	var items []any
	var err error
	switch op {
	case 'e', 'u':
		items, err = u.popMark()
	default:
		n := 1
		if op == 's' {
			n = 2
		}
		for range n {
			v, popErr := u.pop()
			if popErr != nil {
				return popErr
			}
			items = append([]any{v}, items...)
		}
	}
	if err != nil || len(u.stack) == 0 {
		return errPickle
	}
	switch to := u.stack[len(u.stack)-1].(type) {
	case *pyList:
		if op != 'a' && op != 'e' {
			return errPickle
		}
		to.items = append(to.items, items...)
	case pyDict:
		if op != 's' && op != 'u' || len(items)%2 != 0 {
			return errPickle
		}
		for i := 0; i < len(items); i += 2 {
			to[fmt.Sprint(plainKey(items[i]))] = items[i+1]
		}
	default:
		return errPickle
	}
	return nil
}

// plainKey is a key that prints shortly: containers make no keys here.
func plainKey(v any) any {
	switch v.(type) {
	case string, int64, bool, float64, nil:
		return v
	}
	return "?"
}
