package chart

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp/syntax"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/Masterminds/sprig/v3"
	goyaml "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// helmFunctions are the functions that Helm adds to those of sprig, except for those that call templates. They behave as
// Helm's, whose own are not exported: also when they swallow an error.
var helmFunctions = template.FuncMap{
	"toToml": func(v any) string {
		text, err := toTOML(v)
		if err != nil {
			return err.Error()
		}
		return text
	},
	"mustToToml":    toTOML,
	"fromToml":      func(text string) map[string]any { return orError(toml.Unmarshal, text) },
	"toYaml":        func(v any) string { text, _ := toYAML(v); return text },
	"mustToYaml":    toYAML,
	"toYamlPretty":  toYAMLPretty,
	"fromYaml":      func(text string) map[string]any { return orError(unmarshalYAML, text) },
	"fromYamlArray": func(text string) []any { return orErrorItem(unmarshalYAML, text) },
	"toJson":        func(v any) string { data, _ := json.Marshal(v); return string(data) },
	"mustToJson":    func(v any) (string, error) { data, err := json.Marshal(v); return string(data), err },
	"fromJson":      func(text string) map[string]any { return orError(json.Unmarshal, text) },
	"fromJsonArray": func(text string) []any { return orErrorItem(json.Unmarshal, text) },
	"required": func(message string, v any) (any, error) {
		if text, isText := v.(string); v == nil || isText && text == "" {
			return v, errors.New(message)
		}
		return v, nil
	},
	"fail": func(message string) (string, error) { return "", errors.New(message) },
	// Those of sprig use the time zone of the machine.
	"toDate":     func(layout, text string) time.Time { t, _ := time.Parse(layout, text); return t },
	"mustToDate": time.Parse,
	// As for helm template, no cluster has anything, and no name is resolved.
	"lookup":        func(string, string, string, string) map[string]any { return map[string]any{} },
	"getHostByName": func(string) string { return "" },
	// Those of sprig are in any order, so that output would differ from rendering to rendering.
	"keys":   sortedKeys,
	"values": sortedValues,
}

func toTOML(v any) (string, error) {
	var b bytes.Buffer
	err := toml.NewEncoder(&b).Encode(v)
	return b.String(), err
}

func toYAML(v any) (string, error) {
	data, err := yaml.Marshal(v)
	return strings.TrimSuffix(string(data), "\n"), err
}

func toYAMLPretty(v any) string {
	var b bytes.Buffer
	encoder := goyaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(v); err != nil {
		return ""
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func unmarshalYAML(data []byte, v any) error { return yaml.Unmarshal(data, v) }

func orError(unmarshal func([]byte, any) error, text string) map[string]any {
	m := map[string]any{}
	if err := unmarshal([]byte(text), &m); err != nil {
		m["Error"] = err.Error()
	}
	return m
}

func orErrorItem(unmarshal func([]byte, any) error, text string) []any {
	a := []any{}
	if err := unmarshal([]byte(text), &a); err != nil {
		a = []any{err.Error()}
	}
	return a
}

func sortedKeys(maps ...map[string]any) []string {
	keys := []string{}
	for _, m := range maps {
		keys = append(keys, sortedKeysOf(m)...)
	}
	return keys
}

func sortedKeysOf(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

func sortedValues(m map[string]any) []any {
	values := []any{}
	for _, key := range sortedKeysOf(m) {
		values = append(values, m[key])
	}
	return values
}

// allFunctions are the functions that templates may call, except for those that call templates and those whose result differs
// from call to call.
var allFunctions = func() template.FuncMap {
	all := sprig.TxtFuncMap()
	delete(all, "env")
	delete(all, "expandenv")
	maps.Copy(all, template.FuncMap{
		// Go's own, so that what they write is counted.
		"print": fmt.Sprint, "printf": fmt.Sprintf, "println": fmt.Sprintln,
		"html": template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,
	})
	maps.Copy(all, helmFunctions)
	maps.Copy(all, durations)
	return all
}()

// shallow are the functions that do not look into the values that they are called with.
var shallow = func() map[string]bool {
	all := map[string]bool{}
	for name := range strings.FieldsSeq(`list tuple dict get set unset hasKey pluck keys values pick omit append push mustAppend mustPush
		prepend mustPrepend first mustFirst rest mustRest last mustLast initial mustInitial reverse mustReverse slice mustSlice concat
		dig chunk mustChunk default empty coalesce all any compact mustCompact ternary typeOf typeIs typeIsLike kindOf kindIs required`) {
		all[name] = true
	}
	return all
}()

// makes returns how many bytes a call may make, for functions that make much of little.
var makes = map[string]func(args []reflect.Value) int64{
	"repeat":    func(a []reflect.Value) int64 { return times(a[0].Int(), int64(a[1].Len())) },
	"until":     func(a []reflect.Value) int64 { return steps(0, a[0].Int(), sign(a[0].Int())) },
	"untilStep": func(a []reflect.Value) int64 { return steps(a[0].Int(), a[1].Int(), a[2].Int()) },
	"seq":       seqSize,
	"indent":    indentSize,
	"nindent":   indentSize,
	"replace": func(a []reflect.Value) int64 {
		return int64(a[2].Len()) + times(int64(strings.Count(a[2].String(), a[0].String())), int64(a[1].Len()))
	},
	"join": func(a []reflect.Value) int64 {
		if v := indirect(a[1]); v.Kind() == reflect.Slice {
			return times(int64(v.Len()), int64(a[0].Len()))
		}
		return 0
	},
	"wrapWith":                   func(a []reflect.Value) int64 { return times(int64(a[2].Len()), int64(a[1].Len()+1)) },
	"printf":                     printfSize,
	"regexReplaceAll":            regexSize,
	"mustRegexReplaceAll":        regexSize,
	"regexReplaceAllLiteral":     regexSize,
	"mustRegexReplaceAllLiteral": regexSize,
	"fromYaml":                   textSize,
	"fromYamlArray":              textSize,
	"fromToml":                   textSize,
	"fromJson":                   textSize,
	"mustFromJson":               textSize,
	"fromJsonArray":              textSize,
	"derivePassword":             func([]reflect.Value) int64 { return 4 << 20 },
}

// parses are the functions that read values from a text.
var parses = map[string]bool{"fromYaml": true, "fromYamlArray": true, "fromToml": true, "fromJson": true, "mustFromJson": true, "fromJsonArray": true}

// comparisons return how many bytes are compared by functions that compare each part of a value with others. sizes are those
// of the arguments.
var comparisons = map[string]func(args []reflect.Value, sizes []int64) int64{
	"uniq": uniqSize, "mustUniq": uniqSize,
	"without": withoutSize, "mustWithout": withoutSize,
}

func uniqSize(a []reflect.Value, sizes []int64) int64 { return lengthOf(a[0]) * sizes[0] }

func withoutSize(a []reflect.Value, sizes []int64) int64 { return lengthOf(a[0]) * sizes[1] }

func lengthOf(v reflect.Value) int64 {
	if v = indirect(v); v.Kind() == reflect.Slice {
		return int64(v.Len())
	}
	return 0
}

// comparedPerStep is how many bytes are compared for a step.
const comparedPerStep = 512

// writesYAML are the functions that take long for each byte that they write.
var writesYAML = map[string]bool{"toYaml": true, "mustToYaml": true, "toYamlPretty": true}

func times(n, bytes int64) int64 {
	if n <= 0 || bytes == 0 {
		return 0
	}
	if n > maxPerCall/bytes {
		return maxPerCall + 1
	}
	return n * bytes
}

// farthest limits the numbers of a sequence: with larger ones counting would overflow, and never end.
const farthest = 1 << 60

// steps is the size of a sequence of numbers.
func steps(from, to, by int64) int64 {
	if min(from, to, by) < -farthest || max(from, to, by) > farthest {
		return maxPerCall + 1
	}
	if by == 0 || (to > from) != (by > 0) {
		return 0
	}
	return times((to-from)/by+1, 8)
}

func sign(n int64) int64 {
	if n < 0 {
		return -1
	}
	return 1
}

// seqSize is that of the numbers as text. A sequence counts by one, downwards too, unless it has a step.
func seqSize(a []reflect.Value) int64 {
	var numbers []int64
	for i := range a[0].Len() { // those of a variadic function
		numbers = append(numbers, a[0].Index(i).Int())
	}
	from, to, by := int64(1), int64(1), int64(1)
	switch len(numbers) {
	case 1:
		to = numbers[0]
	case 2:
		from, to = numbers[0], numbers[1]
	case 3:
		from, by, to = numbers[0], numbers[1], numbers[2]
	}
	if len(numbers) < 3 && to < from {
		by = -1
	}
	return 3 * steps(from, to, by)
}

func indentSize(a []reflect.Value) int64 {
	return int64(a[1].Len()) + times(int64(strings.Count(a[1].String(), "\n")+1), a[0].Int())
}

// printfSize refuses a width or a precision that is in an argument or has more than three digits.
func printfSize(a []reflect.Value) int64 {
	format := a[0].String()
	for {
		_, verb, found := strings.Cut(format, "%")
		if !found {
			return 0
		}
		flags := strings.TrimLeft(verb, "+-# 0123456789.[]*")
		digits := 0
		for _, c := range verb[:len(verb)-len(flags)] {
			if digits++; c < '0' || c > '9' {
				digits = 0
			}
			if c == '*' || digits > 3 {
				return maxPerCall + 1
			}
		}
		if format = flags; format != "" {
			format = format[1:]
		}
	}
}

// regexSize is that of the text with a replacement at each position; each reference in it is as long as the text at most.
func regexSize(a []reflect.Value) int64 {
	text, by := int64(a[1].Len()), a[2].String()
	return text + times(text+1, int64(len(by))) + times(int64(strings.Count(by, "$")), text)
}

// matches are the functions whose first arguments are a pattern and a text.
var matches = func() map[string]bool {
	all := map[string]bool{}
	for name := range strings.FieldsSeq("regexMatch regexFind regexFindAll regexSplit regexReplaceAll regexReplaceAllLiteral") {
		all[name], all["mustR"+name[1:]] = true, true
	}
	return all
}()

// matchedPerStep is how many pairs of an instruction of a pattern and a byte of a text take a step.
const matchedPerStep = 64

// match takes the steps to compile a pattern and to compare it with a text, which can take each of its instructions for each byte of
// the text. A short pattern can have many instructions: (.{1000}){1000}.
func (b *budget) match(pattern string, text int) error {
	if err := b.step(int64(len(pattern))); err != nil {
		return err
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil // the function says so
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil
	}
	n := int64(len(program.Inst))
	return b.step(n/4 + n*int64(text)/matchedPerStep)
}

// textSize is that of what is read from a text.
func textSize(a []reflect.Value) int64 { return times(int64(a[0].Len()), 16) }

func indirect(v reflect.Value) reflect.Value {
	for v.IsValid() && (v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer) {
		v = v.Elem()
	}
	return v
}

// guarded returns a function that takes what it costs from the budget.
func (b *budget) guarded(name string, function any) any {
	f := reflect.ValueOf(function)
	t := f.Type()
	var ins []reflect.Type
	for i := range t.NumIn() {
		ins = append(ins, t.In(i))
	}
	failing := reflect.TypeFor[error]()
	typ := reflect.FuncOf(ins, []reflect.Type{t.Out(0), failing}, t.IsVariadic())
	return reflect.MakeFunc(typ, func(args []reflect.Value) []reflect.Value {
		err := b.before(name, args)
		if err != nil {
			return []reflect.Value{reflect.Zero(t.Out(0)), reflect.ValueOf(&err).Elem()}
		}
		var out []reflect.Value
		if t.IsVariadic() {
			out = f.CallSlice(args)
		} else {
			out = f.Call(args)
		}
		if len(out) == 1 {
			out = append(out, reflect.Zero(failing))
		}
		if out[1].IsNil() {
			size := sizeOf(out[0])
			if parses[name] { // a short text can have many values, by aliases
				size, err = b.read(valueOf(out[0]))
			}
			if err = cmp.Or(err, b.make(size)); err == nil && writesYAML[name] {
				err = b.step(size / yamlPerStep)
			}
			if err != nil {
				out[1] = reflect.ValueOf(&err).Elem()
			}
		}
		return out
	}).Interface()
}

// before takes what a call costs before it makes its result.
func (b *budget) before(name string, args []reflect.Value) error {
	if !shallow[name] {
		sizes := make([]int64, len(args))
		for i, a := range args {
			var err error
			if sizes[i], err = b.read(valueOf(a)); err != nil {
				return err
			}
		}
		if compared := comparisons[name]; compared != nil {
			if err := b.step(compared(args, sizes) / comparedPerStep); err != nil {
				return err
			}
		}
	}
	if matches[name] {
		if err := b.match(args[0].String(), args[1].Len()); err != nil {
			return err
		}
	}
	if size := makes[name]; size != nil {
		return b.make(size(args))
	}
	return nil
}

func valueOf(v reflect.Value) any {
	if !v.IsValid() || !v.CanInterface() {
		return nil
	}
	return v.Interface()
}

// sizeOf is the size of a result without what its parts refer to.
func sizeOf(v reflect.Value) int64 {
	switch v = indirect(v); v.Kind() {
	case reflect.String:
		return int64(v.Len())
	case reflect.Slice:
		return times(int64(v.Len()), max(int64(v.Type().Elem().Size()), 1))
	case reflect.Map:
		return times(int64(v.Len()), 48)
	}
	return 0
}
