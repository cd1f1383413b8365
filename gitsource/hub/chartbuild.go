package hub

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub/build"
	"github.com/gitfleet/gitfleet/gitsource/hub/chart"
	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/grant"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
	"github.com/gitfleet/gitfleet/placement/api"
)

// maxChartSteps limits the steps of all renderings of a commit.
const maxChartSteps = 1_000_000_000

// renderCharts renders the charts of a commit, once for all clusters with the same inputs, and sets the content of the objects. What
// cannot be rendered fails for the clusters that get it, and does not refuse the commit.
func (l *Loader) renderCharts(t *tree.Tree, g *build.Graph, a *assembly, o *overlays) error {
	if len(o.charts) == 0 {
		return nil
	}
	n := len(g.Roots) + len(o.dirs)
	for _, u := range o.charts {
		n += len(u.inputs)
	}
	if n > a.limits.Builds {
		a.full = true
		a.problem(problem.Error, o.charts[0].it.origin, "", "the commit has more than %d kustomizations to build and charts to render; split the repository, or raise limits.builds", a.limits.Builds)
		return nil
	}
	t = t.AsStored() // nothing says which objects of a chart have values of an encrypted file
	charts := map[string]*chart.Chart{}
	builds := map[*chartUse]map[string]*clusterBuild{}
	left := map[string]int{} // uses of each chart
	for _, u := range o.charts {
		left[u.dir]++
	}
	for _, u := range o.charts {
		left[u.dir]--
		if u.unavailable != "" {
			builds[u] = u.failed(a)
			continue
		}
		c := charts[u.dir]
		if c == nil {
			if !o.chartDirs[u.dir] && u.remote == nil {
				u.reportMissing(a, o)
				continue
			}
			var err error
			if c, err = chart.Read(t, u.dir, a.limits); err != nil {
				return err
			}
			charts[u.dir] = c
		}
		builds[u] = map[string]*clusterBuild{}
		for _, key := range slices.Sorted(maps.Keys(u.inputs)) {
			b, err := l.renderChart(t, a, c, u, u.inputs[key])
			if err != nil || a.full {
				return err
			}
			builds[u][key] = b
		}
		if left[u.dir] == 0 {
			c.Release()
		}
	}
	scopes, definitions := a.declaredScopes(), a.definitions()
	var found clusterProblems
	for _, u := range o.charts {
		c := charts[u.dir]
		if c == nil && u.unavailable == "" {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(builds[u])) {
			if u.unavailable != "" {
				break // reported for all clusters
			}
			problems, err := a.checkBuild(t, builds[u][key], u.key(), scopes, definitions, true)
			if err != nil {
				return err
			}
			found.add(problems, builds[u][key].clusters)
		}
		u.reportChoices(a)
		u.warnUnusedValues(a, o.clusters, o.valuesOf)
		a.checkChartGrants(c, u, builds[u], scopes)
		l.setChart(a, o, u, builds[u])
	}
	a.problems = append(a.problems, found.list()...)
	return nil
}

// reportMissing reports that the directory of a chart has none. Another chart that nothing renders is probably the one that was meant: the
// only one, or the one whose path is most similar.
func (u *chartUse) reportMissing(a *assembly, o *overlays) {
	var others []string
	for _, p := range a.problems {
		if path.Base(p.Path) == chart.FileName && !o.has(p.Path) {
			others = append(others, path.Dir(p.Path))
		}
	}
	fix := "correct the path"
	if u.meant = api.Closest(u.dir, others); len(others) == 1 {
		u.meant = others[0]
	}
	if u.meant != "" {
		fix = api.DidYouMean(strings.TrimPrefix(u.meant, o.hub+"/"))
	}
	a.problem(problem.Error, u.it.at(u.field()), u.field(), "the commit has no %s/%s, so that is no chart; %s", u.dir, chart.FileName, fix)
}

// withoutMeantCharts drops the problems of charts that nothing renders if that follows from a wrong path, which is reported.
func (o *overlays) withoutMeantCharts(all problem.List) problem.List {
	return slices.DeleteFunc(all, func(p problem.Problem) bool {
		return path.Base(p.Path) == chart.FileName && slices.ContainsFunc(o.charts, func(u *chartUse) bool { return u.meant == path.Dir(p.Path) })
	})
}

// failed reports that the files of a chart are not there, and returns what fails for that reason.
func (u *chartUse) failed(a *assembly) map[string]*clusterBuild {
	builds := map[string]*clusterBuild{}
	var clusters []string
	for key, in := range u.inputs {
		builds[key] = &clusterBuild{OverlayBuild: &api.OverlayBuild{File: u.it.origin.Path, Err: u.unavailable, Hash: u.unavailable}, parsed: &parsed{}}
		clusters = append(clusters, in.clusters...)
	}
	message := u.unavailable
	if len(clusters) > 0 {
		slices.Sort(clusters)
		message += ", for " + listed(clusters)
	}
	a.problem(problem.Failure, u.it.at(u.field()), u.field(), "%s", message)
	return builds
}

func (u *chartUse) key() buildKey {
	spec := u.it.chart
	return buildKey{dir: u.dir, namespace: spec.Namespace, namespaced: u.it.id.Namespace != "", kind: chartKind, reserved: strings.Join(spec.ReservedNamespaces, ",")}
}

// reportChoices reports the clusters for which the values are not known.
func (u *chartUse) reportChoices(a *assembly) {
	for _, name := range slices.Sorted(maps.Keys(u.faults)) {
		fault := u.faults[name]
		a.problem(problem.Failure, u.it.at(fault.field), fault.field, "%s", fault.err)
	}
}

// renderChart renders a chart with the inputs of some clusters, unless the result is cached.
func (l *Loader) renderChart(t *tree.Tree, a *assembly, c *chart.Chart, u *chartUse, in *chartInputs) (*clusterBuild, error) {
	sources := c.Files()
	h := sha256.New()
	spec := u.it.chart
	if u.remote != nil {
		sources = []string{a.lockFile}
		fmt.Fprintf(h, "%s\n", u.it.at(u.field())) // the position of its objects
	}
	fmt.Fprintf(h, "%s %q %q %t %s %q %q\n", c.Hash, spec.ReleaseName, spec.Namespace, spec.SkipCRDs, spec.Hooks, in.kubeVersion, in.apiVersions)
	for _, layer := range in.layers {
		hash := ""
		if layer.file != "" {
			var err error
			if hash, err = t.Hash(layer.file); err != nil {
				return nil, err
			}
			sources = append(sources, layer.file)
		}
		fmt.Fprintf(h, "%q %q %q\n", layer.file, hash, layer.values)
	}
	slices.Sort(sources)
	b := &clusterBuild{OverlayBuild: &api.OverlayBuild{File: c.File}, sources: slices.Compact(sources), fingerprint: hex.EncodeToString(h.Sum(nil)), clusters: in.clusters, by: u.it}
	a.sources[c.File] = slices.Compact(slices.Sorted(slices.Values(append(a.sources[c.File], b.sources...))))
	key := cacheKey{c.File, b.fingerprint, true, "/" + chartKind}
	p := l.cache[key]
	if p == nil {
		l.built++
		var err error
		if p, err = render(t, a, c, u, in); err != nil {
			return nil, err
		}
		u.locate(p.Problems)
	}
	l.keep(key, p)
	b.parsed = p
	switch a.chartSteps += p.steps; {
	case p.transient: // the next load may succeed
		a.full = true
		a.problems = append(a.problems, p.Problems...)
		return nil, nil
	case a.chartSteps > l.chartSteps:
		a.full = true
		a.problem(problem.Error, u.it.origin, "", "up to here the charts of the commit take more than %d steps to render; split the repository, or have fewer clusters with values of their own", l.chartSteps)
		return nil, nil
	}
	if !a.addBuilt(p) {
		return nil, nil
	}
	return b, nil
}

// render renders a chart, and decodes its objects as if they had been read from files.
func render(t *tree.Tree, a *assembly, c *chart.Chart, u *chartUse, in *chartInputs) (*parsed, error) {
	p := &parsed{forClusters: true}
	p.End.Path = c.File
	spec := u.it.chart
	inputs := chart.Inputs{Release: spec.ReleaseName, Namespace: spec.Namespace, KubeVersion: in.kubeVersion, APIVersions: in.apiVersions, SkipCRDs: spec.SkipCRDs, LeftOut: chart.LeftOut(spec.Hooks)}
	for _, layer := range in.layers {
		values, err := p.readValues(t, a, c, layer)
		if err != nil {
			return nil, err
		}
		inputs.Values = append(inputs.Values, values...)
	}
	if p.Problems.HasErrors() {
		return p, nil
	}
	before := c.Steps
	outputs, err := c.Render(inputs)
	p.steps = c.Steps - before
	if fault, is := errors.AsType[*chart.Fault](err); is {
		p.transient = fault.Transient
		p.fail(c, fault.Path, fault.Line, fault.Message)
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	content := contentOf(outputs)
	for _, output := range outputs {
		p.addOutput(a, c, u, &output, content)
		if p.Cut {
			break
		}
	}
	return p, nil
}

func (p *parsed) fail(c *chart.Chart, path string, line int, message string) {
	p.Problems = append(p.Problems, problem.Problem{Origin: api.Origin{Path: path, Line: line, Kustomization: c.File}, Severity: problem.Error, Message: message})
}

// locate moves problems in a chart that is not in the repository to the object that asks for the chart.
func (u *chartUse) locate(problems problem.List) {
	for i := range problems {
		found := &problems[i]
		at := u.origin(found.Path, found.Line)
		if at.Path == found.Path {
			continue
		}
		found.Message = fmt.Sprintf("%s: %s", api.Origin{Path: found.Path, Line: found.Line}, strings.TrimPrefix(found.Field+": "+found.Message, ": "))
		found.Path, found.Line, found.Field = at.Path, at.Line, u.field()
	}
}

// readValues reads the values of one layer.
func (p *parsed) readValues(t *tree.Tree, a *assembly, c *chart.Chart, layer valuesLayer) (all []map[string]any, err error) {
	if layer.file == "" {
		var values map[string]any
		err := json.Unmarshal(layer.values, &values)
		return []map[string]any{values}, err
	}
	all, problems, err := chart.ReadValues(t, layer.file, a.limits)
	for _, found := range problems {
		p.fail(c, found.Path, found.Line, strings.TrimPrefix(found.Field+": "+found.Message, ": "))
	}
	return all, err
}

// addOutput adds the objects of one file of the chart. Their positions are those of the template. content identifies all that the
// chart renders.
func (p *parsed) addOutput(a *assembly, c *chart.Chart, u *chartUse, o *chart.Output, content string) {
	spec := u.it.chart
	add := p.addItemsIn(spec.Namespace)
	file := o.Read(c.File, a.limits, a.rest()-p.Size, func(r *document.Report, value any) {
		object, _ := value.(map[string]any)
		if !chart.LeaveOut(r, object, spec.Hooks) {
			chart.PrepareHook(r, object, content)
			chart.Keep(object)
			if at := u.origin(r.Origin.Path, r.Origin.Line); at.Path != r.Origin.Path {
				r.Origin.Path, r.Origin.Line, r.Root = at.Path, at.Line, nil
			}
			add(r, value)
		}
	})
	p.Problems = append(p.Problems, file.Problems...)
	p.Size, p.End, p.Cut = p.Size+file.Size, file.End, p.Cut || file.Cut
}

// contentOf identifies what a chart renders.
func contentOf(outputs []chart.Output) string {
	h := sha256.New()
	for _, o := range outputs {
		text := o.Text
		if !o.Literal {
			text = text[:len(text)-1] // without the line break that every template ends with
		}
		fmt.Fprintf(h, "%q ", o.Path)
		writeQuoted(h, text)
		io.WriteString(h, "\n")
	}
	return chart.ContentName(h)
}

// writeQuoted writes a text as %q does, line by line: definitions can be very long.
func writeQuoted(w io.Writer, text []byte) {
	var quoted []byte
	io.WriteString(w, `"`)
	for line := range bytes.Lines(text) {
		quoted = strconv.AppendQuote(quoted[:0], string(line))
		w.Write(quoted[1 : len(quoted)-1])
	}
	io.WriteString(w, `"`)
}

// checkChartGrants reports what a chart has that is not granted to the files that it is in and that are read for it.
func (a *assembly) checkChartGrants(c *chart.Chart, u *chartUse, builds map[string]*clusterBuild, scopes map[api.GroupKind]bool) {
	if a.grants == nil {
		return
	}
	file, files := a.readFor(u.it)
	refers := func(to string) {
		a.problems = append(a.problems, a.grants.CheckReference(grant.Reference{Origin: u.it.at(u.field()), Field: u.field(), To: to})...)
	}
	if u.remote == nil {
		refers(c.File)
		a.checkUnreadBy(file, u.dir, c.File)
	}
	for _, name := range slices.Sorted(maps.Keys(u.files)) {
		refers(name)
	}
	for _, key := range slices.Sorted(maps.Keys(builds)) {
		a.checkProducts(files, builds[key], u.key(), scopes)
	}
}

// setChart sets the content of a chart.
func (l *Loader) setChart(a *assembly, o *overlays, u *chartUse, builds map[string]*clusterBuild) {
	selectors, _ := api.HashOf(selectorsOf(u.it.chart), nil)
	built := &api.BuiltOverlay{At: u.it.at(u.field()), Hub: o.hub, Builds: map[string]*api.OverlayBuild{}, Chart: u.choices, Selectors: selectors, ReservedNamespaces: u.it.chart.ReservedNamespaces}
	h := sha256.New()
	contents := []any{u.it.object.Hash}
	for _, key := range slices.Sorted(maps.Keys(builds)) {
		b := builds[key]
		built.Builds[key] = b.OverlayBuild
		contents = append(contents, []any{key, b.Hash})
		fmt.Fprintf(h, "%q %q %q\n", key, b.fingerprint, b.Hash)
	}
	for _, name := range slices.Sorted(maps.Keys(u.choices)) {
		fmt.Fprintf(h, "%q %q\n", name, u.choices[name])
	}
	l.setContent(a, u.it, built, h, contents)
}

// selectorsOf is what decides which clusters have which values.
func selectorsOf(spec *api.ChartSpec) any {
	all := []any{spec.ValuesFiles, spec.WhenMissing}
	for _, entry := range spec.ValuesByCluster {
		all = append(all, entry.ClusterSelector, entry.Expression, entry.ValuesFiles)
	}
	return all
}
