// Package chart renders Helm charts of a commit.
//
// Read reads the files of a chart from the commit, and Chart.Render renders them with values, as
// helm template does, from these files alone: no template can reach a cluster, the network or the
// file system, and no result depends on the time or on chance. Helm's own engine has no limits.
// Therefore the charts, their values and their dependencies are Helm's, while the templates are
// executed here, with limits on steps, memory and output that do not depend on the machine.
package chart

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"
	"time"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/ignore"

	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/sops"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
)

// FileName is the name of the file that makes a directory a chart.
const FileName = "Chart.yaml"

// A Chart has the files of a chart in a directory of a commit.
type Chart struct {
	// Dir is the directory, and File the path of its Chart.yaml.
	Dir, File string
	// Hash identifies the content of the chart.
	Hash string
	// Steps counts those of all renderings so far.
	Steps int64

	tree   *tree.Tree
	limits limit.Limits
	// steps limits those of a rendering, and deadline ends it.
	steps    int64
	deadline time.Time
	// size is that of the files, unpacked.
	size int64
	// names are the files, relative to the directory, and files their content, once they are read.
	names []string
	files []*archive.BufferedFile
	// parsing has the templates of the last rendering.
	parsing parsing
	// fault is why the files cannot be listed; nil if they can.
	fault *Fault
}

// A Fault is a reason why a chart cannot be rendered, with its position.
type Fault struct {
	// Path and Line are the position; the line is zero if it is not known.
	Path string
	Line int
	// Message says what is wrong and what to do.
	Message string
	// Transient says that the same rendering may succeed at another time.
	Transient bool
}

// Error returns path:line: message.
func (f *Fault) Error() string {
	if f.Line == 0 {
		return f.Path + ": " + f.Message
	}
	return fmt.Sprintf("%s:%d: %s", f.Path, f.Line, f.Message)
}

// Read lists the files of the chart in a directory. Their content is read when the chart is first rendered. The error means
// that the commit could not be read.
func Read(t *tree.Tree, dir string, limits limit.Limits) (*Chart, error) {
	c := &Chart{Dir: dir, File: path.Join(dir, FileName), tree: t, limits: limits, steps: maxSteps}
	l := &lister{Chart: c, rules: ignore.Empty(), hash: sha256.New()}
	err := l.list()
	if fault, is := errors.AsType[*Fault](err); is {
		c.fault, err = fault, nil
		io.WriteString(l.hash, fault.Error())
	}
	c.Hash = hex.EncodeToString(l.hash.Sum(nil))
	return c, err
}

// A lister lists the files of one chart.
type lister struct {
	*Chart
	rules *ignore.Rules
	hash  hash.Hash
	// patterns is the size of the rules, and listed the number of names.
	patterns, listed int
}

// helmIgnoreSize limits .helmignore, maxListed the names of a chart, with ignored ones and directories, and maxCompared the names
// times the bytes of patterns with which they are compared. One directory can have any number of paths.
const (
	helmIgnoreSize = 64 << 10
	maxListed      = 10 * maxFiles
	maxCompared    = 256 << 20
)

func (l *lister) list() error {
	switch is, err := l.tree.IsFile(l.File); {
	case err != nil:
		return err
	case !is:
		return &Fault{Path: l.Dir, Message: "the directory has no " + FileName + ", so it is no chart; correct chart.path, or add one"}
	}
	name := path.Join(l.Dir, ignore.HelmIgnore)
	if is, err := l.tree.IsFile(name); err != nil {
		return err
	} else if is {
		data, fault, err := l.tree.Read(name)
		if err != nil {
			return err
		}
		if fault != "" {
			return &Fault{Path: name, Message: fault}
		}
		if l.patterns = len(data); l.patterns > helmIgnoreSize {
			return &Fault{Path: name, Message: fmt.Sprintf("it has more than %s of patterns; list directories instead of their files", limit.Size(helmIgnoreSize))}
		}
		if l.rules, err = ignore.Parse(bytes.NewReader(data)); err != nil {
			return &Fault{Path: name, Message: oneLine(err.Error())}
		}
	}
	l.rules.AddDefaults()
	return l.dir("", 0)
}

// dir lists a directory of the chart, by its path relative to the chart.
func (l *lister) dir(dir string, depth int) error {
	at := path.Join(l.Dir, dir)
	if depth > deepest {
		return &Fault{Path: at, Message: fmt.Sprintf("the directories of the chart are nested deeper than %d levels", deepest)}
	}
	entries, err := l.tree.List(at)
	if err != nil {
		return err
	}
	if l.listed += len(entries); l.listed > maxListed || l.listed*l.patterns > maxCompared {
		return &Fault{Path: at, Message: fmt.Sprintf("up to here the chart has too many files and directories for a chart, or for the patterns of its %s: %d; remove what it does not need", ignore.HelmIgnore, l.listed)}
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		info, err := e.Info()
		switch {
		case err != nil:
			return err
		case l.rules.Ignore(name, info):
		case e.IsDir():
			err = l.dir(name, depth+1)
		case e.Type()&fs.ModeSymlink != 0:
			err = &Fault{Path: path.Join(at, e.Name()), Message: "this is a symbolic link, which is never followed; commit the file itself, or list the link in " + ignore.HelmIgnore}
		case !e.Type().IsRegular():
			err = &Fault{Path: path.Join(at, e.Name()), Message: "this is not a regular file; commit the file itself, or list it in " + ignore.HelmIgnore}
		default:
			err = l.file(name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *lister) file(name string) error {
	at := path.Join(l.Dir, name)
	if l.names = append(l.names, name); len(l.names) > maxFiles {
		return &Fault{Path: at, Message: fmt.Sprintf("up to here the chart has more than %d files; list what it does not need in %s", maxFiles, ignore.HelmIgnore)}
	}
	hash, err := l.tree.Hash(at)
	fmt.Fprintf(l.hash, "%q %s\n", at, hash)
	return err
}

// open reads the files, once.
func (c *Chart) open() error {
	if c.files != nil {
		return nil
	}
	left := c.limits.BuildInput
	use := func(name string, bytes int64) error {
		if left -= bytes; left < 0 {
			return &Fault{Path: name, Message: fmt.Sprintf("up to here the files of the chart take more than %s; list what it does not need in %s, or raise limits.buildInput", limit.Size(c.limits.BuildInput), ignore.HelmIgnore)}
		}
		return nil
	}
	files := make([]*archive.BufferedFile, 0, len(c.names))
	for _, relative := range c.names {
		name := path.Join(c.Dir, relative)
		data, fault, err := c.tree.Read(name)
		if err != nil {
			return err
		}
		if fault != "" {
			return &Fault{Path: name, Message: fault}
		}
		if err := use(name, int64(len(data))); err != nil {
			return err
		}
		if path.Ext(relative) == ".tgz" && strings.Contains("/"+relative, "/charts/") {
			u := unpacking{left: left, files: maxFiles - len(c.names)}
			if err := u.archive(bytes.NewReader(data), 1); err != nil && !errors.Is(err, errUnpacked) {
				return &Fault{Path: name, Message: "not a packed chart: " + err.Error()}
			}
			if err := use(name, left-u.left); err != nil {
				return err
			}
		}
		files = append(files, &archive.BufferedFile{Name: relative, Data: bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))})
	}
	c.files, c.size = files, c.limits.BuildInput-left
	return nil
}

// Release frees the memory of the files and the templates, which are read again if the chart is rendered once more.
func (c *Chart) Release() { c.files, c.parsing = nil, parsing{} }

// Files lists the files of the chart, relative to the repository.
func (c *Chart) Files() []string {
	names := []string{c.File}
	for _, name := range c.names {
		names = append(names, path.Join(c.Dir, name))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// load parses the files. The result is a new chart at each call, since Helm changes it when it is rendered.
func (c *Chart) load() (*helmchart.Chart, error) {
	if err := c.open(); err != nil {
		return nil, err
	}
	files := make([]*archive.BufferedFile, len(c.files))
	for i, f := range c.files {
		own := *f // the loader renames the files of subcharts
		files[i] = &own
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		return nil, &Fault{Path: c.faultyFile(err), Line: lineIn(err), Message: yamlPrefix.ReplaceAllString(oneLine(err.Error()), "not valid YAML: ")}
	}
	if strings.EqualFold(loaded.Metadata.Type, "library") {
		return nil, &Fault{Path: c.File, Message: "this is a library chart, which has no objects of its own; place a chart that depends on it"}
	}
	return loaded, c.checkEncrypted(loaded)
}

// checkEncrypted reports values and templates that are encrypted, of a chart or of one that it depends on.
func (c *Chart) checkEncrypted(loaded *helmchart.Chart) error {
	for _, f := range loaded.Raw {
		if name := path.Clean(f.Name); (name == "values.yaml" || strings.HasPrefix(name, "templates/")) && sops.IsEncrypted(f.Data) {
			return &Fault{Path: c.source(path.Join(loaded.ChartFullPath(), name)), Message: Encrypted}
		}
	}
	for _, sub := range loaded.Dependencies() {
		if err := c.checkEncrypted(sub); err != nil {
			return err
		}
	}
	return nil
}

// faultyFile is the file that an error of the loader is about.
func (c *Chart) faultyFile(err error) string {
	for _, name := range []string{"values.yaml", "Chart.lock", "requirements.yaml", "requirements.lock"} {
		if strings.HasPrefix(err.Error(), "cannot load "+name) {
			return path.Join(c.Dir, name)
		}
	}
	return c.File
}

// yamlPrefix is what the loader writes before the reason why a file is not YAML. The position has the file and the line.
var yamlPrefix = regexp.MustCompile(`^cannot load \S+: (cannot unmarshal yaml document: )?error converting YAML to JSON: yaml: (line \d+: )?`)

// source returns the path in the repository of a file of a chart, which Helm names by the names of the charts that
// it is in: web/charts/db/templates/a.yaml.
func (c *Chart) source(name string) string {
	_, relative, _ := strings.Cut(name, "/")
	if slices.Contains(c.names, relative) {
		return path.Join(c.Dir, relative)
	}
	// A packed subchart, or one whose directory has another name.
	rest, isSub := strings.CutPrefix(relative, "charts/")
	if sub, _, _ := strings.Cut(rest, "/"); isSub {
		for _, name := range c.names {
			if packed, is := strings.CutPrefix(name, "charts/"+sub); is && path.Ext(packed) == ".tgz" {
				return path.Join(c.Dir, name)
			}
		}
	}
	return c.File
}

// oneLine joins the lines of a message.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// lineIn returns the line that an error names.
func lineIn(err error) int {
	found := yamlLine.FindStringSubmatch(err.Error())
	if found == nil {
		return 0
	}
	line, _ := strconv.Atoi(found[1])
	return line
}

// A parsing has the templates of a chart, parsed for all renderings in which it has the same ones.
type parsing struct {
	// texts are the names and the texts of the templates.
	texts    []string
	root     *template.Template
	prepared map[*parse.Tree]bool
}

var yamlLine = regexp.MustCompile(`line (\d+)`)
