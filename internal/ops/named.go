package ops

import "reflect"

// FieldNamed returns the field with that JSON name of an operation's input or output, or of
// a struct embedded in it, and the zero Value where there is none. Operations have inputs of
// their own; a name means the same in all.
func FieldNamed(doc any, name string) reflect.Value {
	v := reflect.ValueOf(doc)
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	for _, f := range fieldsOf(v.Type()) {
		if f.name == name {
			found, _ := v.FieldByIndexErr(f.index) // none below an embedded pointer that is nil
			return found
		}
	}
	return reflect.Value{}
}

// TextNamed returns the text in the field with that JSON name, whatever its string type, or
// in what it points to; "" where there is none.
func TextNamed(doc any, name string) string {
	if f := reflect.Indirect(FieldNamed(doc, name)); f.Kind() == reflect.String {
		return f.String()
	}
	return ""
}
