package logfile

import (
	"bufio"
	"bytes"
	"io"
	"os"

	"golang.org/x/text/encoding/unicode"
)

// utf16Marks are the byte order marks of UTF-16. PowerShell writes redirected output in UTF-16.
var utf16Marks = [][]byte{{0xff, 0xfe}, {0xfe, 0xff}}

func isUTF16(head []byte) bool {
	return bytes.HasPrefix(head, utf16Marks[0]) || bytes.HasPrefix(head, utf16Marks[1])
}

// InUTF8 converts a text in UTF-16 to UTF-8, and passes any other text on.
func InUTF8(r io.Reader) io.Reader {
	b := bufio.NewReader(r)
	if head, _ := b.Peek(2); isUTF16(head) {
		return unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM).NewDecoder().Reader(b)
	}
	return b
}

// keptAsUTF8 keeps the ends of a file in UTF-16, converted to UTF-8: offsets then refer to the
// converted text. For any other file it returns nil.
func keptAsUTF8(file *os.File) (*streamEnds, error) {
	head := make([]byte, 2)
	if n, _ := file.ReadAt(head, 0); !isUTF16(head[:n]) {
		return nil, nil
	}
	return keepEnds(file, keepTail)
}
