package config

import (
	"reflect"
	"strings"
)

// Changes returns the fields in which b differs from a, by their names in the file.
func Changes(a, b Config) []string {
	var names []string
	var compare func(path string, a, b reflect.Value)
	compare = func(path string, a, b reflect.Value) {
		if a.Kind() != reflect.Struct {
			if !reflect.DeepEqual(a.Interface(), b.Interface()) {
				names = append(names, path)
			}
			return
		}
		for i := range a.NumField() {
			f := a.Type().Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case f.PkgPath != "" || name == "-":
			case f.Anonymous:
				compare(path, a.Field(i), b.Field(i))
			default:
				compare(strings.TrimPrefix(path+"."+name, "."), a.Field(i), b.Field(i))
			}
		}
	}
	compare("", reflect.ValueOf(a), reflect.ValueOf(b))
	return names
}
