package build

import (
	"path"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/hub/chart"
	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/lockfile"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/placement/api"
)

// read reads the kustomization in a directory, and resolves its references.
func (g *Graph) read(dir string) (*kustomization, error) {
	k := &kustomization{dir: dir}
	for _, name := range FileNames {
		if ok, err := g.tree.IsFile(path.Join(dir, name)); err != nil {
			return nil, err
		} else if ok {
			k.file = path.Join(dir, name)
			break
		}
	}
	read := func() error { return g.readFile(k, k.file, k.parse) }
	if k.file == "" {
		read = func() error { return g.generate(k) }
	}
	if err := read(); err != nil {
		return nil, err
	}
	for i := 0; i < len(k.mentions); i++ { // files of plugins have more
		if err := g.resolve(k, k.mentions[i]); err != nil {
			return nil, err
		}
	}
	if err := g.resolveCharts(k); err != nil {
		return nil, err
	}
	k.replaceRemotes()
	return k, nil
}

// readFile reads a file of a kustomization. It calls parse with its documents if it has no errors.
func (g *Graph) readFile(k *kustomization, name string, parse func(data []byte, documents []*document.Report)) error {
	data, fault, err := g.tree.Read(name)
	if err != nil {
		return err
	}
	if fault != "" {
		k.problems = append(k.problems, problem.Problem{Origin: api.Origin{Path: name}, Severity: problem.Error, Message: fault})
		return nil
	}
	var documents []*document.Report
	file := document.Read(name, data, g.limits, g.limits.BuildInput, func(r *document.Report, _ any) { documents = append(documents, r) })
	k.problems = append(k.problems, file.Problems...)
	k.size += file.Size
	if file.Cut {
		k.problems = append(k.problems, problem.Problem{Origin: api.Origin{Path: name}, Severity: problem.Error, Message: inputExceeded(g.limits)})
	} else if !file.Problems.HasErrors() {
		parse(data, documents)
	}
	return nil
}

// resolve finds the file or directory of the commit that a mention refers to.
func (g *Graph) resolve(k *kustomization, m mention) error {
	name := path.Join(k.dir, m.value)
	switch {
	case m.value == "":
		k.fail(m, "is empty; name a file, or remove the entry")
		return nil
	case isRemote(m.value) || m.isRepository():
		return g.resolveRemote(k, m)
	case g.tree.MountOf(name) != g.tree.MountOf(k.dir):
		k.fail(m, "%q is outside of the repository of this kustomization", m.value)
		return nil
	case path.IsAbs(m.value), name == "..", strings.HasPrefix(name, "../"):
		k.fail(m, "%q is outside of the repository; write a relative path to something in it", m.value)
		return nil
	}
	mode, at, ok, err := g.tree.Lookup(name)
	if err != nil {
		return err
	}
	switch {
	case !ok:
		k.fail(m, "the commit has no %s; correct the name, or add the file", name)
	case mode.IsDir():
		return g.resolveDir(k, m, name)
	case !mode.IsRegular():
		k.fail(m, "%s is %s, which is never followed; commit the file itself", at, modeText(mode))
	case m.kind == componentDirectory:
		k.fail(m, "%s is a file; a component is a directory with a kustomization of kind Component", name)
	case !isBelow(k.dir, name):
		k.fail(m, "%s is not in or below %s, and kustomize takes files only from there; refer to a directory with a kustomization, or move the file", name, k.dir)
	default:
		k.files = append(k.files, reference{name, m.kind == dataFile || m.kind == valuesFile, m.kind == schemaFile, m.kind == valuesFile, m.kind == fileOrDirectory})
		if m.kind == pluginFile {
			return g.readFile(k, name, func(_ []byte, documents []*document.Report) { k.parsePlugins(m, documents) })
		}
	}
	return nil
}

func (g *Graph) resolveDir(k *kustomization, m mention, name string) error {
	if m.kind != fileOrDirectory && m.kind != componentDirectory {
		k.fail(m, "%s is a directory; name a file", name)
		return nil
	}
	if name == k.dir || isBelow(name, k.dir) {
		k.fail(m, "%s contains this kustomization, so they would refer to each other in a cycle; remove the reference", name)
		return nil
	}
	for _, file := range FileNames {
		if ok, err := g.tree.IsFile(path.Join(name, file)); err != nil || ok {
			k.dirs = append(k.dirs, name)
			return err
		}
	}
	k.fail(m, "the directory %s has no %s; add one, or list its files", name, FileNames[0])
	return nil
}

// resolveCharts finds the directories of the charts of a kustomization, and their files of values.
func (g *Graph) resolveCharts(k *kustomization) error {
	for _, c := range k.charts {
		local := path.Join(k.dir, c.home)
		if c.Repo != "" && c.Version != "" { // as kustomize does
			local = path.Join(local, c.Name+"-"+c.Version)
		}
		local = path.Join(local, c.Name)
		at := mention{field: c.field, line: c.line}
		if path.IsAbs(c.home) || local == ".." || strings.HasPrefix(local, "../") || g.tree.MountOf(local) != g.tree.MountOf(k.dir) {
			k.fail(at, "the chart %s in %q is outside of the repository; write a relative path in %s", c.Name, c.home, c.homeField)
			continue
		}
		if err := g.resolveChart(k, c, at, local); err != nil {
			return err
		}
		for i, text := range slices.Concat([]string{c.ValuesFile}, c.AdditionalValuesFiles) {
			m := mention{field: c.field + ".valuesFile", line: c.line, value: text, kind: valuesFile}
			if i > 0 {
				m.field = c.field + ".additionalValuesFiles"
			} else if text == "" {
				continue
			}
			name, err := g.resolveValues(k, c, m, local)
			if err != nil {
				return err
			}
			if i > 0 {
				c.additional = append(c.additional, name)
			} else {
				c.values = name
			}
		}
	}
	return nil
}

// resolveChart finds the directory of a chart: the one that kustomize would use if it is there, or else the chart that is locked.
func (g *Graph) resolveChart(k *kustomization, c *helmChart, at mention, local string) error {
	mode, found, ok, err := g.tree.Lookup(local)
	switch {
	case err != nil:
		return err
	case ok && mode.IsRegular():
		k.fail(at, "%s is a file, and a chart is a directory; unpack it, or correct the name", found)
		return nil
	case ok && !mode.IsDir():
		k.fail(at, "%s is %s, which is never followed; commit the directory itself", found, modeText(mode))
		return nil
	case !ok && c.Repo == "":
		k.fail(at, "the commit has no %s; correct the name or %s, commit the chart, or write its repo and version", local, c.homeField)
		return nil
	case ok:
		c.dir = local
	default:
		asked := repositoryOf(c.HelmChart)
		dir, use, unavailable := g.remotes.Chart(g.tree, lockfile.Request{Repository: asked.Repository, Name: asked.Name, Version: asked.Version})
		g.remoteCharts = append(g.remoteCharts, use)
		if k.locked = true; unavailable != "" {
			k.fail(at, "%s", unavailable)
			return nil
		}
		c.dir, c.remote = dir, true
	}
	file := path.Join(c.dir, chart.FileName)
	if is, err := g.tree.IsFile(file); err != nil {
		return err
	} else if !is {
		k.fail(at, "the commit has no %s, so that %s is no chart; correct the name or %s", file, c.dir, c.homeField)
		c.dir = ""
	}
	return nil
}

// resolveValues finds a file of values. One that kustomize would find in a chart that it has pulled is in the locked chart.
func (g *Graph) resolveValues(k *kustomization, c *helmChart, m mention, local string) (name string, err error) {
	k.mentions = append(k.mentions, m)
	name = path.Join(k.dir, m.value)
	rest, within := strings.CutPrefix(name, local+"/")
	if within && c.dir == "" {
		return name, nil // reported for the chart
	}
	if within && c.remote {
		name = path.Join(c.dir, rest)
		if is, err := g.tree.IsFile(name); err != nil || is {
			return name, err
		}
		k.fail(m, "the chart %s has no %s; correct the name", c.Name, rest)
		return name, nil
	}
	return name, g.resolve(k, m)
}
