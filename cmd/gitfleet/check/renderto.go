package check

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// renderedList is a file with the names of the directories that were written: no other is ever replaced or removed.
const renderedList = ".gitfleet-rendered"

// A renderedDir is a directory with the manifests of each cluster. It is left by no name and through no link.
type renderedDir struct {
	name string
	root *os.Root
	// written are the clusters that have a directory, sorted.
	written []string
}

// A destination gets the manifests of clusters, each in a directory with its name.
type destination interface {
	// replace replaces the directory of a cluster.
	replace(cluster string, files map[string][]byte) error
	// removeOthers removes the directories of clusters that are gone.
	removeOthers(clusters []string) error
}

// writeTo writes the objects of a plan below a directory.
func (r *renderer) writeTo(dir string, p *plan.Plan) (err error) {
	names, err := r.clusters(p)
	if err != nil {
		return err
	}
	d, err := openRendered(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.root.Close()) }()
	if err := r.write(d, dir, names, p); err != nil {
		return err
	}
	return r.finish(p)
}

// write writes the objects of some clusters; name is that of the destination.
func (r *renderer) write(to destination, name string, clusters []string, p *plan.Plan) error {
	r.out = io.Discard // problems go to standard error
	r.invalid(p)
	objects := 0
	for _, cluster := range clusters {
		files, complete, err := r.files(p, cluster)
		if err != nil {
			return err
		}
		if !complete {
			fmt.Fprintf(r.notes, "%s is left as it is\n", path.Join(name, cluster))
			continue
		}
		if err := to.replace(cluster, files); err != nil {
			return fmt.Errorf("write %s: %w", path.Join(name, cluster), err)
		}
		objects += len(files)
	}
	if r.cluster == "" {
		if err := to.removeOthers(clusters); err != nil {
			return err
		}
	}
	fmt.Fprintf(r.notes, "%s for %s\n", output.Count(objects, "file"), output.Count(len(clusters), "cluster"))
	return nil
}

// files returns the files of a cluster by name, and whether all of its content could be rendered.
func (r *renderer) files(p *plan.Plan, cluster string) (files map[string][]byte, complete bool, err error) {
	files, complete = map[string][]byte{}, true
	for pl := range p.Placements.Values() {
		if pl.Spec.Spec.Strategy.ReportsDiff() {
			continue // its objects are compared and never written
		}
		for _, c := range pl.Clusters {
			if c.Binding.Cluster != cluster {
				continue
			}
			if c.Err != nil {
				complete = false
				r.unrendered(pl, c)
			}
			for _, refused := range c.Content.Refused {
				r.problem(fmt.Sprintf("%s: %s is not sent: %s", refused.Origin, objectName(refused.Manifest), refused.Message()))
			}
			for _, m := range c.Content.Manifests {
				if c.Leaves(m.ID) {
					continue
				}
				if m.Encrypted != nil {
					complete = false
					r.problem(fmt.Sprintf("%s: %s: %s", m.Origin, objectName(m), m.Encrypted.Message()))
					continue
				}
				text, err := r.text(m)
				if err != nil {
					return nil, false, err
				}
				header := output.Escape(provenance(m.Origin.Path, pl, m))
				files[fileOf(m.ID)] = fmt.Appendf(nil, "# %s\n%s", header, text)
			}
		}
	}
	return files, complete, nil
}

// fileOf returns the file of an object in the directory of its cluster.
func fileOf(id api.ID) string {
	kind := id.Kind
	if id.Group != "" {
		kind += "." + id.Group
	}
	return path.Join(fileName(id.Namespace), fileName(kind+"."+id.Name)+".yaml")
}

// longestName is the length of a file name without its extension that every file system allows.
const longestName = 200

// fileName returns a text as the name of a file: what is not allowed everywhere is escaped, and the end of a long one is
// replaced by a hash. Different texts have different names.
func fileName(text string) string {
	var b strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	name := b.String()
	if len(name) > longestName {
		name = fmt.Sprintf("%s-%x", name[:longestName], sha256.Sum256([]byte(text)))[:longestName+17]
	}
	return name
}

// errNotWritten says that a directory of the name of a cluster is somebody else's.
var errNotWritten = errors.New("the directory exists, and gitfleet render has not written it (" + renderedList + " does not list it); move it away, or choose another place")

func openRendered(dir string) (*renderedDir, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	d := &renderedDir{name: dir, root: root}
	list, err := root.ReadFile(renderedList)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		root.Close()
		return nil, err
	}
	d.written = clustersIn(list)
	return d, nil
}

// clustersIn returns the clusters that a list has.
func clustersIn(list []byte) (clusters []string) {
	for name := range strings.Lines(string(list)) {
		if name = strings.TrimSpace(name); api.ClusterName(name) == name && name != "" && fileName(name) == name {
			clusters = append(clusters, name)
		}
	}
	return clusters
}

// replace replaces the directory of a cluster. Until all files are written the old one stays.
func (d *renderedDir) replace(cluster string, files map[string][]byte) error {
	if _, err := d.root.Lstat(cluster); err == nil && !slices.Contains(d.written, cluster) {
		return errNotWritten
	}
	fresh, old := ".new-"+cluster, ".old-"+cluster
	for _, dir := range []string{fresh, old} {
		if err := d.root.RemoveAll(dir); err != nil { // of a run that was interrupted
			return err
		}
	}
	if err := d.root.Mkdir(fresh, 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := d.root.MkdirAll(path.Join(fresh, path.Dir(name)), 0o755); err != nil {
			return err
		}
		if err := d.root.WriteFile(path.Join(fresh, name), text, 0o644); err != nil {
			return err
		}
	}
	if err := d.list(append(slices.Clone(d.written), cluster)); err != nil {
		return err
	}
	if err := d.root.Rename(cluster, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := d.root.Rename(fresh, cluster); err != nil {
		return errors.Join(err, d.root.Rename(old, cluster))
	}
	return d.root.RemoveAll(old)
}

// list records which directories were written.
func (d *renderedDir) list(clusters []string) error {
	slices.Sort(clusters)
	d.written = slices.Compact(clusters)
	const fresh = renderedList + ".new"
	if err := d.root.WriteFile(fresh, []byte(strings.Join(d.written, "\n")+"\n"), 0o644); err != nil {
		return err
	}
	return d.root.Rename(fresh, renderedList)
}

// removeOthers removes the directories of clusters that are gone.
func (d *renderedDir) removeOthers(clusters []string) error {
	var kept []string
	for _, name := range d.written {
		if slices.Contains(clusters, name) {
			kept = append(kept, name)
		} else if err := d.root.RemoveAll(name); err != nil {
			return err
		}
	}
	return d.list(kept)
}
