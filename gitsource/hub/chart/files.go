package chart

import (
	"encoding/base64"
	"path"
	"strings"
	"unsafe"

	"github.com/gobwas/glob"
	"helm.sh/helm/v4/pkg/chart/common"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
)

// files are those of a chart that are no templates, with the methods that templates know from Helm.
type files map[string][]byte

// mostNames is the length of the names of the files of a chart, or of one that it depends on if these are longer.
func mostNames(c *helmchart.Chart) (most int64) {
	for _, f := range c.Files {
		most += int64(len(f.Name))
	}
	for _, sub := range c.Dependencies() {
		most = max(most, mostNames(sub))
	}
	return most
}

func newFiles(from []*common.File) files {
	all := files{}
	for _, f := range from {
		all[f.Name] = f.Data
	}
	return all
}

// GetBytes returns the content of a file, or nothing.
func (f files) GetBytes(name string) []byte {
	if data, is := f[name]; is {
		return data
	}
	return []byte{}
}

// Get returns the content of a file as text. It makes no copy, since templates can keep any number of them: nothing changes
// the content.
func (f files) Get(name string) string {
	data := f[name]
	return unsafe.String(unsafe.SliceData(data), len(data))
}

// Glob returns the files whose names match a pattern.
func (f files) Glob(pattern string) files {
	g, err := glob.Compile(pattern, '/')
	if err != nil {
		g = glob.MustCompile("**")
	}
	matching := files{}
	for name, data := range f {
		if g.Match(name) {
			matching[name] = data
		}
	}
	return matching
}

// AsConfig returns the files as the YAML of the data of a ConfigMap.
func (f files) AsConfig() string {
	return f.asYAML(func(data []byte) string { return string(data) })
}

// AsSecrets returns the files as the YAML of the data of a Secret.
func (f files) AsSecrets() string { return f.asYAML(base64.StdEncoding.EncodeToString) }

func (f files) asYAML(text func([]byte) string) string {
	if f == nil {
		return ""
	}
	data := map[string]string{}
	for name, content := range f {
		data[path.Base(name)] = text(content)
	}
	out, _ := toYAML(data)
	return out
}

// Lines returns the lines of a file.
func (f files) Lines(name string) []string {
	text := f.Get(name)
	if text == "" {
		return []string{}
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}
