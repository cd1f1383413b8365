package chart

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"helm.sh/helm/v4/pkg/chart/common"
	helmvalues "helm.sh/helm/v4/pkg/chart/common/util"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	dependencies "helm.sh/helm/v4/pkg/chart/v2/util"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
)

// Inputs are what a rendering depends on beside the chart.
type Inputs struct {
	// Release and Namespace are the name and the namespace of the release.
	Release, Namespace string
	// Values replace those of the chart; each of them those before it.
	Values []map[string]any
	// KubeVersion is the version of Kubernetes that the chart is told.
	KubeVersion string
	// APIVersions are told in addition to those of Kubernetes itself, as group/version or group/version/Kind.
	APIVersions []string
	// SkipCRDs leaves out the definitions in the directory crds.
	SkipCRDs bool
	// LeftOut reports whether an object is not placed, so that it may differ from rendering to rendering; nil if all are placed.
	LeftOut func(object map[string]any) bool
}

// An Output is what one file of the chart becomes.
type Output struct {
	// Path is the file in the repository: a template or a definition.
	Path string
	// Text is YAML.
	Text []byte
	// Literal says that the text is the file itself, so that its lines are those of the file.
	Literal bool

	template string
}

// Read reads the documents of the output, and passes each to visit. The positions of their objects are those of the file of the
// chart, from which builtBy has made them; of a template only the line is known. A problem of the text of a template, which is no
// file, says in its message which line of the text it is about.
func (o *Output) Read(builtBy string, limits limit.Limits, maxSize int64, visit func(r *document.Report, value any)) document.File {
	file := document.Read(o.Path, o.Text, limits, maxSize, func(r *document.Report, value any) {
		r.Origin.Kustomization = builtBy
		if !o.Literal {
			object, _ := value.(map[string]any)
			kind, _ := object["kind"].(string)
			r.Origin.Line, r.Root = o.line(r.Origin.Document, kind), nil
		}
		visit(r, value)
	})
	for i := range file.Problems {
		p := &file.Problems[i]
		if p.Kustomization != "" { // about an object
			continue
		}
		if p.Kustomization = builtBy; !o.Literal {
			p.Message, p.Line = fmt.Sprintf("in what it renders, line %d: %s", p.Line, p.Message), 0
		}
	}
	return file
}

var kindLine = regexp.MustCompile(`(?m)^kind:[ \t]*"?([A-Za-z]+)`)

// line returns the line of the file from which the document with a number, counted from 1, was probably made; zero if that is not
// known. kind is that of the object.
func (o *Output) line(document int, kind string) int {
	line := 0
	for n, at := range kindLine.FindAllStringSubmatchIndex(o.template, -1) {
		if o.template[at[2]:at[3]] != kind {
			continue
		}
		start := o.template[:at[0]]
		if before, is := strings.CutSuffix(start, "\n"); is { // apiVersion is usually in front of kind
			if i := strings.LastIndex(before, "\n") + 1; strings.HasPrefix(before[i:], "apiVersion:") {
				start = before[:i]
			}
		}
		found := strings.Count(start, "\n") + 1
		if n == document-1 {
			return found
		}
		if line == 0 {
			line = found
		}
	}
	return line
}

// CheckKubeVersion returns an error if a version of Kubernetes cannot be read.
func CheckKubeVersion(version string) error {
	_, err := common.ParseKubeVersion(version)
	return err
}

// Render renders the chart. The result does not depend on anything else. The error is a *Fault if the chart cannot be rendered with
// these inputs, and otherwise means that the commit could not be read.
func (c *Chart) Render(in Inputs) ([]Output, error) {
	if c.fault != nil {
		return nil, c.fault
	}
	c.deadline = time.Now().Add(c.limits.BuildTime)
	calls, output, crds, err := c.execute(in, func(int) bool { return false }, nil)
	if err != nil {
		return nil, err
	}
	if len(calls) > 0 {
		if err := c.checkChance(in, calls, output); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(output)) {
		text := output[name]
		if len(bytes.TrimSpace(text)) == 0 || strings.HasSuffix(name, notes) {
			continue
		}
		source := c.source(name)
		o := Output{Path: source, Text: documents(text)}
		if _, relative, _ := strings.Cut(name, "/"); path.Join(c.Dir, relative) == source {
			o.template = c.textOf(relative)
		}
		crds = append(crds, o)
	}
	return crds, nil
}

func (c *Chart) textOf(relative string) string {
	for _, f := range c.files {
		if f.Name == relative {
			return string(f.Data)
		}
	}
	return ""
}

// maxChances limits how many calls are looked at to find the one that makes output differ.
const maxChances = 64

// checkChance returns an error if the output depends on calls of functions whose result differs, which names one of them.
func (c *Chart) checkChance(in Inputs, calls []string, output map[string][]byte) error {
	var ended error // why it is not known
	object := "the object"
	differs := func(other func(int) bool) bool {
		_, out, _, err := c.execute(in, other, nil)
		if fault, is := errors.AsType[*Fault](err); err != nil && (!is || fault.Transient) {
			ended = err
		}
		same := err == nil && in.equivalent(out, output)
		if d := in.difference(output, out); err == nil && !same && d != nil {
			object = fmt.Sprintf("%s %s (%s: %s)", d.kind, d.name, c.source(d.template), strings.Join(d.fields, ", "))
		}
		return !same
	}
	if !differs(func(int) bool { return true }) {
		return nil
	}
	failing := 0
	for i := range min(len(calls), maxChances) {
		if ended != nil {
			return ended
		}
		if differs(func(call int) bool { return call == i }) {
			failing = i
			break
		}
	}
	if ended != nil {
		return ended
	}
	_, _, _, err := c.execute(in, func(int) bool { return false }, &failure{failing, object})
	if err == nil { // the call is made only if others have another result
		err = &Fault{Path: c.File, Message: errChance{calls[failing], object}.Error()}
	}
	return err
}

// execute renders the chart once, and returns the calls of functions whose result differs, the output of each template and the
// definitions.
func (c *Chart) execute(in Inputs, other func(call int) bool, fail *failure) (calls []string, output map[string][]byte, crds []Output, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &Fault{Path: c.File, Message: fmt.Sprintf("rendering fails on this chart: %v", p)}
		}
	}()
	loaded, err := c.load()
	if err != nil {
		return nil, nil, nil, err
	}
	values, err := c.values(loaded, in)
	if err != nil {
		return nil, nil, nil, err
	}
	b := c.newBudget()
	defer func() { c.Steps += c.size/64 + c.steps - b.steps }()
	e := &engine{budget: b, chance: &chance{budget: b, other: other, fail: fail}, names: longestNames(loaded)}
	sources := map[string]source{}
	if _, err := addSources(loaded, values, sources); err != nil {
		return nil, nil, nil, &Fault{Path: c.File, Message: oneLine(err.Error())}
	}
	names := order(sources)
	root, err := c.templates(e, names, sources)
	if err == nil {
		output, err = e.execute(root, names, sources)
	}
	switch {
	case errors.Is(err, errEnded):
		return nil, nil, nil, errEnded
	case errors.Is(err, errLate):
		return nil, nil, nil, &Fault{Path: c.File, Message: fmt.Sprintf("the rendering took longer than %s; make it smaller, or raise limits.buildTime", c.limits.BuildTime), Transient: true}
	case err != nil:
		return nil, nil, nil, c.faultOf(err)
	}
	if !in.SkipCRDs {
		for _, crd := range loaded.CRDObjects() {
			source := c.source(crd.Filename)
			crds = append(crds, Output{Path: source, Text: crd.File.Data, Literal: path.Base(source) == path.Base(crd.Filename)})
		}
	}
	return e.chance.calls, output, crds, nil
}

// templates returns the templates of the chart for one rendering, and parses them if the last one had others: then other dependencies
// were enabled.
func (c *Chart) templates(e *engine, names []string, sources map[string]source) (*template.Template, error) {
	var texts []string
	for _, name := range names {
		texts = append(texts, name, sources[name].text)
	}
	if c.parsing.root == nil || !slices.Equal(c.parsing.texts, texts) {
		e.prepared = map[*parse.Tree]bool{}
		root, err := e.parseAll(names, sources)
		if err != nil {
			return nil, err
		}
		c.parsing = parsing{texts, root, e.prepared}
	}
	e.prepared = maps.Clone(c.parsing.prepared)
	return c.parsing.root.Clone()
}

// values returns what templates are called with.
func (c *Chart) values(loaded *helmchart.Chart, in Inputs) (common.Values, error) {
	version, err := common.ParseKubeVersion(in.KubeVersion)
	if err != nil {
		return nil, &Fault{Path: c.File, Message: fmt.Sprintf("%q is not a version of Kubernetes; write one such as 1.37.0", in.KubeVersion)}
	}
	if err := c.checkVersion(loaded, version); err != nil {
		return nil, err
	}
	given := map[string]any{}
	for _, v := range in.Values {
		given = loader.MergeMaps(given, asHelm(v).(map[string]any))
	}
	dropConflicts(loaded, given)
	if err := c.checkDependencies(loaded); err != nil {
		return nil, err
	}
	if err := dependencies.ProcessDependencies(loaded, given); err != nil {
		return nil, &Fault{Path: c.File, Message: "dependencies: " + oneLine(err.Error())}
	}
	capabilities := &common.Capabilities{
		KubeVersion: *version,
		APIVersions: append(slices.Clone(common.DefaultVersionSet), in.APIVersions...),
		HelmVersion: common.DefaultCapabilities.HelmVersion,
	}
	capabilities.HelmVersion.GoVersion = ""
	options := common.ReleaseOptions{Name: in.Release, Namespace: in.Namespace, Revision: 1, IsInstall: true}
	values, err := helmvalues.ToRenderValuesWithSchemaValidation(loaded, given, options, capabilities, true)
	if err != nil {
		return nil, &Fault{Path: c.File, Message: "values: " + oneLine(err.Error())}
	}
	all, _ := values["Values"].(common.Values)
	return values, c.checkSchemas(loaded, all)
}

// checkVersion reports that the chart, or one that it depends on, does not support a version of Kubernetes.
func (c *Chart) checkVersion(loaded *helmchart.Chart, version *common.KubeVersion) error {
	if constraint := loaded.Metadata.KubeVersion; constraint != "" {
		allowed, err := semver.NewConstraint(constraint)
		if err != nil {
			return &Fault{Path: c.File, Line: c.lineOf("kubeVersion:"), Message: fmt.Sprintf("kubeVersion: %q is not a range of versions", constraint)}
		}
		if v, err := semver.NewVersion(version.String()); err == nil && !allowed.Check(v) {
			return &Fault{Path: c.File, Line: c.lineOf("kubeVersion:"), Message: fmt.Sprintf("kubeVersion: the chart needs Kubernetes %s, and is told that the cluster has %s; "+
				"place it elsewhere, or correct capabilities.kubeVersion or the property kubernetes-version of the MemberCluster", constraint, version)}
		}
	}
	return nil
}

// lineOf returns the line of a field of Chart.yaml.
func (c *Chart) lineOf(field string) int {
	before, _, found := strings.Cut("\n"+c.textOf(FileName), "\n"+field)
	if !found {
		return 0
	}
	return strings.Count(before, "\n") + 1
}

// checkDependencies reports dependencies that are not in the directory charts: nothing is downloaded.
func (c *Chart) checkDependencies(loaded *helmchart.Chart) error {
	for _, want := range loaded.Metadata.Dependencies {
		if want == nil {
			continue
		}
		if !slices.ContainsFunc(loaded.Dependencies(), func(sub *helmchart.Chart) bool { return sub.Name() == want.Name }) {
			return &Fault{Path: c.File, Line: c.lineOf("dependencies:"), Message: fmt.Sprintf("dependencies: the chart %s is not in %s, and nothing is downloaded; run helm dependency update, and commit that directory",
				want.Name, path.Join(c.Dir, "charts"))}
		}
	}
	return nil
}

// asHelm returns a copy of a value with numbers as Helm has them, and with the types that a schema is validated with.
func asHelm(v any) any {
	switch v := v.(type) {
	case common.Values:
		return asHelm(map[string]any(v))
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[key] = asHelm(value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = asHelm(item)
		}
		return out
	case int64:
		return float64(v)
	}
	return v
}

// dropConflicts removes the defaults of a chart that Helm ignores, because one of the default and the given value is a mapping and the
// other is none: Helm's message about it quotes the value.
func dropConflicts(c *helmchart.Chart, given map[string]any) {
	dropTables(c.Values, given)
	for _, sub := range c.Dependencies() {
		names := []string{sub.Name()}
		for _, d := range c.Metadata.Dependencies {
			if d != nil && d.Name == sub.Name() && d.Alias != "" {
				names = append(names, d.Alias)
			}
		}
		for _, name := range names {
			own, _ := c.Values[name].(map[string]any)
			dropTables(sub.Values, own)
			part, _ := given[name].(map[string]any)
			dropConflicts(sub, part)
		}
	}
}

func dropTables(defaults, given map[string]any) {
	for key, value := range given {
		other, there := defaults[key]
		if !there || value == nil || other == nil {
			continue
		}
		table, isTable := value.(map[string]any)
		otherTable, otherIsTable := other.(map[string]any)
		switch {
		case isTable != otherIsTable:
			delete(defaults, key)
		case isTable:
			dropTables(otherTable, table)
		}
	}
}

// checkSchemas validates the values of a chart and of its dependencies.
func (c *Chart) checkSchemas(loaded *helmchart.Chart, values map[string]any) error {
	if len(loaded.Schema) > 0 {
		if err := validate(loaded.Schema, values); err != nil {
			return &Fault{Path: c.source(path.Join(loaded.ChartFullPath(), "values.schema.json")), Message: "the values do not meet the schema: " + err.Error()}
		}
	}
	for _, sub := range loaded.Dependencies() {
		own, _ := values[sub.Name()].(map[string]any)
		if table, is := values[sub.Name()].(common.Values); is {
			own = table
		}
		if err := c.checkSchemas(sub, own); err != nil {
			return err
		}
	}
	return nil
}

// noLoader refuses schemas that are elsewhere.
type noLoader struct{}

// Load returns an error.
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("it refers to %s, and nothing is downloaded; write that part into the schema", url)
}

const schemaURL = "file:///values.schema.json"

func validate(schema []byte, values map[string]any) error {
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return errors.New("it is not valid JSON")
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	if err := compiler.AddResource(schemaURL, parsed); err != nil {
		return errors.New(oneLine(err.Error()))
	}
	compiled, err := compiler.Compile(schemaURL)
	if err != nil {
		return errors.New(oneLine(err.Error()))
	}
	err = compiled.Validate(asHelm(values))
	if failed, is := errors.AsType[*jsonschema.ValidationError](err); is {
		return errors.New(strings.Join(leaves(failed), "; "))
	}
	return err
}

// leaves names the fields that do not meet a schema, and the keyword that each violates, without their values.
func leaves(e *jsonschema.ValidationError) []string {
	if len(e.Causes) == 0 {
		field := strings.Join(e.InstanceLocation, ".")
		if field == "" {
			field = "the values"
		}
		return []string{field + " violates " + strings.Join(e.ErrorKind.KeywordPath(), ".")}
	}
	var all []string
	for _, cause := range e.Causes {
		all = append(all, leaves(cause)...)
	}
	return all
}
