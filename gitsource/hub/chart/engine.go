package chart

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"

	ci "helm.sh/helm/v4/pkg/chart"
	"helm.sh/helm/v4/pkg/chart/common"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
)

// A source is the text of a template with the values of its chart.
type source struct {
	text   string
	values map[string]any
	// base is the directory of the templates of the chart.
	base string
}

// addSources adds the templates of a chart and of its dependencies, by name. Each chart has the part of the values that is called
// after it, as its Values.
func addSources(c *helmchart.Chart, values map[string]any, all map[string]source) (map[string]any, error) {
	accessor, err := ci.NewAccessor(c)
	if err != nil {
		return nil, err
	}
	metadata := accessor.MetadataAsMap()
	metadata["IsRoot"] = c.IsRoot()
	subcharts := map[string]any{}
	own := map[string]any{
		"Chart": metadata, "Files": newFiles(c.Files), "Release": values["Release"], "Capabilities": values["Capabilities"],
		"Values": common.Values{}, "Subcharts": subcharts,
	}
	if c.IsRoot() {
		own["Values"] = values["Values"]
	} else if table, err := common.Values(values).Table("Values." + c.Name()); err == nil {
		own["Values"] = table
	}
	for _, sub := range c.Dependencies() {
		if subcharts[sub.Name()], err = addSources(sub, own, all); err != nil {
			return nil, err
		}
	}
	for _, t := range c.Templates {
		if accessor.IsLibraryChart() && !strings.HasPrefix(path.Base(t.Name), "_") {
			continue
		}
		base := path.Join(c.ChartFullPath(), "templates")
		all[path.Join(c.ChartFullPath(), t.Name)] = source{string(t.Data), own, base}
	}
	return own, nil
}

// An engine executes the templates of one rendering.
type engine struct {
	*budget
	chance *chance
	// names is the length of the names that a pattern is compared with at most.
	names int64
	// prepared are the trees that count what they cost.
	prepared map[*parse.Tree]bool
}

// functions returns the functions of the templates of root.
func (e *engine) functions(root *template.Template) template.FuncMap {
	functions := template.FuncMap{}
	for name, f := range allFunctions {
		functions[name] = e.guarded(name, f)
	}
	maps.Copy(functions, e.chance.functions())
	functions[stepName] = func(n int) (string, error) { return "", e.step(int64(n)) }
	functions[outputName] = func(v any) (any, error) { _, err := e.read(v); return v, err }
	functions[patternName] = func(pattern string) (string, error) {
		n := int64(len(pattern)) // reading a pattern takes more than comparing it
		return pattern, e.step(8 + (e.names+n)*n/64)
	}
	functions[compareName] = func(v any) (any, error) { return v, e.compare(v) }
	functions[methodName] = func(v any) (any, error) { return v, e.chargeMethod(v) }
	functions[callName] = e.include(root)
	functions["include"] = e.include(root)
	functions["tpl"] = e.tpl(root)
	return functions
}

// parseAll parses the templates of a chart.
func (e *engine) parseAll(names []string, sources map[string]source) (*template.Template, error) {
	root := template.New("chart")
	root.Funcs(e.functions(root))
	for _, name := range names {
		if _, err := e.parse(root, name, sources[name].text); err != nil {
			return nil, err
		}
	}
	return root, nil
}

// execute returns the output of each template that is a file. root has the templates.
func (e *engine) execute(root *template.Template, names []string, sources map[string]source) (map[string][]byte, error) {
	root.Option("missingkey=zero")
	root.Funcs(e.functions(root))
	output := map[string][]byte{}
	for _, name := range names {
		if strings.HasPrefix(path.Base(name), "_") {
			continue
		}
		s := sources[name]
		s.values["Template"] = common.Values{"Name": name, "BasePath": s.base}
		w := &writer{budget: e.budget, file: true}
		if err := root.ExecuteTemplate(w, name, s.values); err != nil {
			return nil, &executionError{name, err}
		}
		// Go writes this for what is missing, whatever the option says.
		output[name] = []byte(strings.ReplaceAll(string(w.text), "<no value>", ""))
	}
	return output, nil
}

// order is that of Helm: templates of subcharts come first.
func order(sources map[string]source) []string {
	return slices.SortedFunc(maps.Keys(sources), func(x, y string) int {
		if byDepth := strings.Count(y, "/") - strings.Count(x, "/"); byDepth != 0 {
			return byDepth
		}
		return strings.Compare(y, x)
	})
}

// include returns the function that executes a template by its name.
func (e *engine) include(t *template.Template) func(string, any) (string, error) {
	return func(name string, data any) (string, error) {
		return e.call(func(w *writer) error { return t.ExecuteTemplate(w, name, data) })
	}
}

// call executes a template within another one.
func (e *engine) call(execute func(*writer) error) (string, error) {
	if e.calls == maxCalls {
		return "", errCalls
	}
	if err := e.step(1); err != nil {
		return "", err
	}
	e.calls++
	defer func() { e.calls-- }()
	w := &writer{budget: e.budget}
	err := execute(w)
	return string(w.text), err
}

// tpl returns the function that executes a text as a template. What it defines is known in it only.
func (e *engine) tpl(parent *template.Template) func(string, any) (string, error) {
	return func(text string, data any) (string, error) {
		if err := e.step(int64(1 + len(text)/16 + len(parent.Templates()))); err != nil {
			return "", err
		}
		t, err := parent.Clone()
		if err != nil {
			return "", err
		}
		t.Option("missingkey=zero") // a clone has not the options
		t.Funcs(template.FuncMap{"include": e.include(t), callName: e.include(t), "tpl": e.tpl(t)})
		if t, err = e.parse(t, parent.Name(), text); err != nil {
			return "", fmt.Errorf("%s, which cannot be parsed: %w", tplMarker, err)
		}
		out, err := e.call(func(w *writer) error { return t.Execute(w, data) })
		if err != nil {
			return "", fmt.Errorf("%s: %w", tplMarker, err)
		}
		return strings.ReplaceAll(out, "<no value>", ""), nil
	}
}

// tplMarker is in an error in front of positions in the text of tpl, which are in no file.
const tplMarker = "in the text of tpl"

// parse adds a template, and prepares all that its text defines.
func (e *engine) parse(t *template.Template, name, text string) (*template.Template, error) {
	if err := checkNesting(name, text); err != nil {
		return nil, err
	}
	parsed, err := t.New(name).Parse(text)
	if err != nil {
		return nil, &executionError{name, err}
	}
	for _, defined := range t.Templates() {
		if tree := defined.Tree; tree != nil && !e.prepared[tree] {
			e.prepared[tree] = true
			prepare(tree)
		}
	}
	return parsed, nil
}

// compare takes the steps to compare a value with others, which reads all of it if it is text.
func (e *engine) compare(v any) error {
	if text := reflect.ValueOf(v); text.Kind() == reflect.String {
		return e.step(int64(text.Len() / 64))
	}
	return nil
}

// chargeMethod takes the bytes of the result of a method of Files.
func (e *engine) chargeMethod(v any) error {
	switch v := v.(type) {
	case string: // YAML
		if err := e.step(int64(len(v) / yamlPerStep)); err != nil {
			return err
		}
		return e.make(int64(len(v)))
	case []string:
		return e.make(int64(16 * len(v)))
	case files:
		return e.make(int64(48 * len(v)))
	}
	return nil
}

func (e *executionError) Error() string { return e.err.Error() }
func (e *executionError) Unwrap() error { return e.err }

var (
	// position is that of one of the templates that are executed within each other.
	position = regexp.MustCompile(`template: ([^:\s]+):(\d+)(?::\d+)?: `)
	// executing is in front of the cause.
	executing = regexp.MustCompile(`^executing "(?:[^"\\]|\\.)*" at <(.*?)>: `)
	calling   = regexp.MustCompile(`^error calling (\w+): `)
	quoted    = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
)

// faultOf returns the error of a template with the position in the innermost file, and without values.
func (c *Chart) faultOf(err error) error {
	failed, is := errors.AsType[*executionError](err)
	if !is {
		return err
	}
	text := err.Error()
	f := &Fault{Path: c.source(failed.template)}
	outer, _, inTpl := strings.Cut(text, tplMarker)
	at := position.FindAllStringSubmatch(outer, -1)
	if len(at) == 0 { // what is written, and not how
		f.Message = oneLine(text)
		return f
	}
	last := at[len(at)-1]
	f.Path = c.source(last[1])
	if _, relative, _ := strings.Cut(last[1], "/"); f.Path == path.Join(c.Dir, relative) { // and not a packed chart
		f.Line, _ = strconv.Atoi(last[2])
	}
	cause := text
	if all := position.FindAllStringIndex(text, -1); len(all) > 0 {
		cause = text[all[len(all)-1][1]:]
	}
	action := ""
	if m := executing.FindStringSubmatch(cause); m != nil {
		action, cause = m[1], cause[len(m[0]):]
	}
	f.Message = message(err, action, cause)
	if inTpl {
		f.Message += " (" + tplMarker + ")"
	}
	if entry := c.source(failed.template); entry != f.Path {
		f.Message += ", for " + entry
	}
	return f
}

// message is about a failure in an action of a template. It quotes no values, which may be secret, unless the chart itself says what is
// missing.
func message(err error, action, cause string) string {
	if own, is := errors.AsType[errChance](err); is {
		return own.Error()
	}
	function := calling.FindStringSubmatch(cause)
	if function != nil {
		cause = cause[len(function[0]):]
	}
	switch {
	case function != nil && strings.HasPrefix(function[1], "gitfleet_"):
		return oneLine(cause)
	case function != nil && (function[1] == "fail" || function[1] == "required"):
		return "the chart refuses its values: " + oneLine(cause)
	case function != nil && function[1] == "include" && strings.Contains(cause, "no template "):
		return "include: the chart has no template of this name; correct it, or define it"
	case function != nil:
		return function[1] + ": " + hidden(cause)
	case action != "":
		return "at {{ " + action + " }}: " + hidden(cause)
	}
	return "not a template: " + oneLine(cause)
}

// hidden leaves out what a message quotes.
func hidden(cause string) string { return oneLine(quoted.ReplaceAllString(cause, "(a value)")) }
