package build

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/gitfleet/gitfleet/gitsource/hub/chart"
	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/gitsource/hub/schema"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
	"github.com/gitfleet/gitfleet/gitsource/hub/validation"
	"github.com/gitfleet/gitfleet/placement/api"
)

// kustomize runs the helm program for helmCharts and for generators that are charts. A build renders the charts itself, and gives kustomize their objects as further
// resources, in files that the repository does not have.

// renderCharts renders the charts of the build. It reports whether another attempt may succeed if there are problems.
func (b *builder) renderCharts() (transient bool, err error) {
	namespaces := map[string][]string{}
	if slices.ContainsFunc(b.parts, func(k *kustomization) bool { return len(k.charts) > 0 }) {
		b.findNamespaces(b.root.dir, "", map[string]bool{}, namespaces)
	}
	for _, k := range b.parts {
		for i, c := range k.charts {
			namespace := c.Namespace
			switch all := namespaces[k.dir]; {
			case namespace == "" && len(all) > 1:
				slices.Sort(all)
				b.failIn(k, c, "its base is built for several namespaces (%s) at once, so that it is not known in which one the chart is; write namespace here", strings.Join(all, ", "))
				continue
			case namespace == "":
				namespace = all[0]
			}
			r, err := b.graph.render(k, i, cmp.Or(namespace, "default"))
			if err != nil {
				return false, err
			}
			b.addRendering(k, c, r)
			transient = transient || r.transient
		}
	}
	return transient, nil
}

// findNamespaces finds the namespaces that kustomize gives the charts of a kustomization that have none.
func (b *builder) findNamespaces(dir, inherited string, seen map[string]bool, all map[string][]string) {
	k := b.graph.nodes[dir]
	namespace := cmp.Or(k.spec.Namespace, inherited)
	if key := dir + "\x00" + namespace; !seen[key] {
		seen[key] = true
		all[dir] = append(all[dir], namespace)
		for _, next := range k.dirs {
			b.findNamespaces(next, namespace, seen, all)
		}
	}
}

// addRendering adds the files of a rendering to those of the build, and its problems.
func (b *builder) addRendering(k *kustomization, c *helmChart, r *rendering) {
	for i := range r.files {
		f := &r.files[i]
		b.chartFiles[f.name] = chartFile{f, k, c}
		b.texts[f.name], b.positions[f.name], b.places[f.name] = f.text, f.positions, f.places
		b.use(f.name, int64(len(f.text)))
	}
	b.rendered[r.key] = r.steps
	for _, p := range r.problems {
		if at := b.chartOrigin(k, c, p.Origin); at.Path != p.Path {
			p.Message = fmt.Sprintf("%s: %s", p.Origin, strings.TrimPrefix(p.Field+": "+p.Message, ": "))
			p.Origin, p.Field = at, c.field
		}
		p.Kustomization = b.File
		b.problems = append(b.problems, p)
	}
}

// failIn reports a problem of an entry of helmCharts.
func (b *builder) failIn(k *kustomization, c *helmChart, format string, args ...any) {
	origin := b.localOrigin(api.Origin{Path: k.file, Line: c.line, Kustomization: b.File})
	b.problems = append(b.problems, problem.Problem{Origin: origin, Field: c.field, Severity: problem.Error, Message: fmt.Sprintf(format, args...)})
}

// chartOrigin returns the position of what comes from a chart: that in the chart, or else the entry that asks for it.
func (b *builder) chartOrigin(k *kustomization, c *helmChart, in api.Origin) api.Origin {
	in.Kustomization = b.File
	if c.remote && strings.HasPrefix(in.Path, c.dir+"/") {
		in = api.Origin{Path: k.file, Line: c.line, Kustomization: b.File}
	}
	return b.localOrigin(in)
}

// chartSpec returns the kustomization file with the objects of its charts as resources.
func (b *builder) chartSpec(k *kustomization, spec types.Kustomization) types.Kustomization {
	spec.HelmCharts, spec.HelmGlobals = nil, nil
	spec.Generators = slices.DeleteFunc(slices.Clone(spec.Generators), func(entry string) bool { return slices.Contains(k.inflators, entry) })
	spec.Resources = slices.Clone(spec.Resources)
	for _, name := range slices.Sorted(maps.Keys(b.chartFiles)) {
		if b.chartFiles[name].in == k {
			spec.Resources = append(spec.Resources, "./"+path.Base(name))
		}
	}
	return spec
}

// prepareHooks does with the objects of charts what helm and its hooks need, once they are built.
func (b *builder) prepareHooks(reports []*document.Report, objects []any) {
	contents := map[string][]byte{}
	for i, r := range reports {
		if r.Release != "" {
			text, _ := json.Marshal(objects[i])
			contents[r.Release] = append(append(contents[r.Release], text...), '\n')
		}
	}
	for i, r := range reports {
		if object, isMap := objects[i].(map[string]any); isMap && r.Release != "" {
			h := sha256.New()
			h.Write(contents[r.Release])
			chart.PrepareHook(r, object, chart.ContentName(h))
			chart.Keep(object)
		}
	}
}

// render renders a chart of a kustomization, once for all builds of the commit.
func (g *Graph) render(k *kustomization, index int, namespace string) (*rendering, error) {
	key := fmt.Sprintf("%s: chart %d in %s", k.file, index, namespace)
	if r := g.renderings[key]; r != nil {
		return r, nil
	}
	r := &rendering{key: key}
	if err := g.renderInto(r, k, k.charts[index], index, namespace); err != nil {
		return nil, err
	}
	g.renderings[key] = r
	return r, nil
}

func (r *rendering) fail(path string, line int, message string) {
	r.problems = append(r.problems, problem.Problem{Origin: api.Origin{Path: path, Line: line}, Severity: problem.Error, Message: message})
}

func (g *Graph) renderInto(r *rendering, k *kustomization, c *helmChart, index int, namespace string) error {
	if len(g.tree.Encrypted(k.file))+len(g.tree.Encrypted(c.file)) > 0 {
		r.fail(k.file, c.line, c.field+": "+chart.Encrypted)
		return nil
	}
	from, err := g.chart(c.dir)
	if err != nil {
		return err
	}
	policy := api.HooksRun
	if c.SkipHooks {
		policy = api.HooksIgnore
	}
	in := chart.Inputs{
		Namespace: namespace, KubeVersion: cmp.Or(c.KubeVersion, schema.KubernetesVersion+".0"), APIVersions: c.ApiVersions,
		SkipCRDs: !c.IncludeCRDs, LeftOut: chart.LeftOut(policy),
	}
	if in.Release, err = releaseOf(c); err != nil {
		r.fail(k.file, c.line, c.field+"."+err.Error())
		return nil
	}
	if in.Values, err = g.values(r, k, c); err != nil || r.problems.HasErrors() {
		return err
	}
	if g.rendered != nil && g.rendered != from { // builds that follow each other often have the same chart
		g.rendered.Release()
	}
	g.rendered = from
	before := from.Steps
	outputs, err := from.Render(in)
	r.steps = from.Steps - before
	if fault, is := errors.AsType[*chart.Fault](err); is {
		r.transient = fault.Transient
		r.fail(fault.Path, fault.Line, fault.Message)
		return nil
	}
	if err != nil {
		return err
	}
	left := g.limits.BuildInput
	for i, output := range outputs {
		name := path.Join(k.dir, fmt.Sprintf(".gitfleet-chart-%04d-%04d.yaml", index, i))
		if left = g.addOutput(r, &output, policy, name, left); left < 0 {
			r.fail(output.Path, 0, inputExceeded(g.limits))
			break
		}
	}
	return nil
}

// releaseOf returns the name of the release. That without a name is the one of helm template.
func releaseOf(c *helmChart) (name string, err error) {
	field := "releaseName"
	if name = cmp.Or(c.ReleaseName, "release-name"); c.NameTemplate != "" {
		field = "nameTemplate"
		if name, err = chart.Name(c.NameTemplate); err != nil {
			return "", fmt.Errorf("%s: %w", field, err)
		}
	}
	if fault := validation.ReleaseFault(name); fault != "" {
		return "", fmt.Errorf("%s: %s", field, fault)
	}
	return name, nil
}

// values returns the values of an entry as kustomize combines them: the file of values, or else the defaults of the chart, merged with
// the inline values; then the other files.
func (g *Graph) values(r *rendering, k *kustomization, c *helmChart) ([]map[string]any, error) {
	stored := g.tree.AsStored()
	file := cmp.Or(c.values, path.Join(c.dir, "values.yaml"))
	var values []map[string]any
	if is, err := stored.IsFile(file); err != nil {
		return nil, err
	} else if is {
		if values, err = g.readValues(r, stored, file); err != nil {
			return nil, err
		}
	}
	if len(c.ValuesInline) > 0 {
		var of map[string]any
		if len(values) > 0 {
			of = values[0]
		}
		merged, err := mergeValues(of, c.ValuesInline, c.ValuesMerge)
		if err != nil {
			r.fail(k.file, c.line, fmt.Sprintf("%s.valuesInline: cannot be merged with %s: %v", c.field, file, err))
			return nil, nil
		}
		values = []map[string]any{merged}
	}
	for _, file := range c.additional {
		more, err := g.readValues(r, stored, file)
		if err != nil {
			return nil, err
		}
		values = append(values, more...)
	}
	return values, nil
}

func (g *Graph) readValues(r *rendering, stored *tree.Tree, file string) ([]map[string]any, error) {
	values, problems, err := chart.ReadValues(stored, file, g.limits)
	if len(values) > 1 {
		r.fail(file, 0, fmt.Sprintf("values are one document, and this file has %d", len(values)))
	}
	r.problems = append(r.problems, problems...)
	return values, err
}

// mergeValues merges the values of a file and inline values as kustomize does: those of the file stay unless inline values replace them,
// or the other way around.
func mergeValues(file, inline map[string]any, how string) (map[string]any, error) {
	text, err := json.Marshal(inline)
	if err != nil {
		return nil, err
	}
	own := map[string]any{} // a copy
	if err := json.Unmarshal(text, &own); err != nil || how == mergeReplace {
		return own, err
	}
	if file == nil {
		file = map[string]any{}
	}
	if how == mergeMerge {
		return own, mergeInto(own, file, "")
	}
	return file, mergeInto(file, own, "")
}

// mergeInto sets fields of values to those of others; null removes a field.
func mergeInto(values, others map[string]any, at string) error {
	for _, key := range slices.Sorted(maps.Keys(others)) {
		old, other := values[key], others[key]
		table, isTable := other.(map[string]any)
		_, isList := other.([]any)
		oldTable, oldIsTable := old.(map[string]any)
		_, oldIsList := old.([]any)
		switch {
		case other == nil:
			delete(values, key)
		case isTable && (old == nil || oldIsTable):
			if old == nil { // what is new has no null either
				oldTable = map[string]any{}
				values[key] = oldTable
			}
			if err := mergeInto(oldTable, table, at+key+"."); err != nil {
				return err
			}
		case old == nil || isList == oldIsList && !isTable && !oldIsTable:
			values[key] = other
		default:
			return fmt.Errorf("%s%s is %s in one of them and %s in the other", at, key, document.Describe(old), document.Describe(other))
		}
	}
	return nil
}

// addOutput adds the objects of a file of a chart that are placed. It returns how many bytes are left.
func (g *Graph) addOutput(r *rendering, o *chart.Output, policy api.HookPolicy, name string, left int64) int64 {
	f := renderedFile{name: name, source: o.Path}
	file := o.Read(g.nodes[path.Dir(name)].file, g.limits, left, func(report *document.Report, value any) {
		object, _ := value.(map[string]any)
		switch {
		case object == nil:
			report.Errorf(nil, "the chart renders %s, and not an object", document.Describe(value))
			return
		case chart.LeaveOut(report, object, policy):
			return
		}
		kind, _ := object["kind"].(string)
		metadata, _ := object["metadata"].(map[string]any)
		objectName, _ := metadata["name"].(string)
		f.positions = append(f.positions, sourcePosition{kind, objectName, report.Origin.Line, report.Origin.Document})
		markGenerated(object)
		text, _ := json.Marshal(object) // a decoded value
		if len(f.positions) > 1 {
			f.text = append(f.text, "\n---\n"...)
		}
		f.text = append(f.text, text...)
	})
	r.problems = append(r.problems, file.Problems...)
	if len(f.positions) > 0 {
		f.findPlaces(g.limits)
		r.files = append(r.files, f)
	}
	if file.Cut {
		return -1
	}
	return left - file.Size
}

// findPlaces finds where the objects can be marked. Their positions are those in the output of the chart.
func (f *renderedFile) findPlaces(limits limit.Limits) {
	document.Read(f.name, f.text, limits, math.MaxInt64, func(r *document.Report, _ any) {
		for _, p := range placesOf(r) {
			in := f.positions[r.Origin.Document-1]
			p.objectLine, p.document = in.line, in.document
			f.places = append(f.places, p)
		}
	})
}

// markGenerated marks an object of a chart as kustomize does, so that the field namespace leaves it alone. kustomize removes the mark.
func markGenerated(object map[string]any) {
	metadata, isMap := object["metadata"].(map[string]any)
	if !isMap {
		return // kustomize reports that the object has no name
	}
	annotations, isMap := metadata["annotations"].(map[string]any)
	if !isMap {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	annotations[konfig.HelmGeneratedAnnotation] = "true"
}
