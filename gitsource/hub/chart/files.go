package chart

import (
	"encoding/base64"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unsafe"

	"github.com/gobwas/glob"
	"helm.sh/helm/v4/pkg/chart/common"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/gitfleet/gitfleet/gitsource/hub/sops"
)

// files are those of a chart that are no templates, with the methods that templates know from Helm.
type files map[string][]byte

// longestNames is the length of the names of the files of a chart, or of one that it depends on if these are longer.
func longestNames(c *helmchart.Chart) (most int64) {
	for _, f := range c.Files {
		most += int64(len(f.Name))
	}
	for _, sub := range c.Dependencies() {
		most = max(most, longestNames(sub))
	}
	return most
}

// Encrypted says that a file is encrypted, and what to do.
const Encrypted = "it is encrypted with SOPS, and files of charts are not decrypted; refer to a Secret that exists, such as one that a SealedSecret or an ExternalSecret makes"

// encrypted stands for the content of all encrypted files.
var encrypted = []byte("encrypted")

func newFiles(from []*common.File) files {
	all := files{}
	for _, f := range from {
		all[f.Name] = f.Data
		if sops.IsEncrypted(f.Data) {
			all[f.Name] = encrypted
		}
	}
	return all
}

// check returns an error if one of the files is encrypted, so that no ciphertext is rendered in place of its content.
func (f files) check() error {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if unsafe.SliceData(f[name]) == unsafe.SliceData(encrypted) {
			return fmt.Errorf("the file %s: %s", name, Encrypted)
		}
	}
	return nil
}

// GetBytes returns the content of a file, or nothing.
func (f files) GetBytes(name string) ([]byte, error) {
	if data, is := f[name]; is {
		return data, files{name: data}.check()
	}
	return []byte{}, nil
}

// Get returns the content of a file as text. It makes no copy, since templates can keep any number of them: nothing changes
// the content.
func (f files) Get(name string) (string, error) {
	data, err := f.GetBytes(name)
	return unsafe.String(unsafe.SliceData(data), len(data)), err
}

// Glob returns the files whose names match a pattern.
func (f files) Glob(pattern string) (files, error) {
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
	return matching, matching.check()
}

// AsConfig returns the files as the YAML of the data of a ConfigMap.
func (f files) AsConfig() (string, error) {
	return f.asYAML(func(data []byte) string { return string(data) })
}

// AsSecrets returns the files as the YAML of the data of a Secret.
func (f files) AsSecrets() (string, error) { return f.asYAML(base64.StdEncoding.EncodeToString) }

func (f files) asYAML(text func([]byte) string) (string, error) {
	if f == nil {
		return "", nil
	}
	data := map[string]string{}
	for name, content := range f {
		data[path.Base(name)] = text(content)
	}
	out, _ := toYAML(data)
	return out, f.check()
}

// Lines returns the lines of a file.
func (f files) Lines(name string) ([]string, error) {
	text, err := f.Get(name)
	if text == "" || err != nil {
		return []string{}, err
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n"), nil
}
