package hub

import (
	"errors"
	"path"
	"sync"

	"github.com/gitfleet/gitfleet/placement/api"
)

// readFiles parses the plain manifests. Files are read one after another, and
// parsed on all processors.
func (l *Loader) readFiles(t *tree, w *walk, g *graph, a *assembly) error {
	results := make([]*parsed, 0, len(w.manifests))
	var jobs []*fileJob
	var group sync.WaitGroup
	defer group.Wait()
	for _, name := range w.manifests {
		if owner := g.owner(name); owner != "" {
			if g.owned[name] == "" {
				a.unlisted(name, owner)
			}
			continue
		}
		known, job, err := l.readFile(t, name)
		if err != nil {
			return err
		}
		if known != nil {
			results = append(results, known)
			continue
		}
		jobs = append(jobs, job)
		words := <-l.words
		group.Go(func() {
			job.run(words)
			l.words <- words
		})
	}
	group.Wait()
	for _, job := range jobs {
		l.files.put(job.key, job.result)
		results = append(results, job.result)
	}
	for _, r := range results {
		a.add(r)
	}
	return nil
}

// readFile returns what is known of a file, or the job to find it out.
func (l *Loader) readFile(t *tree, name string) (*parsed, *fileJob, error) {
	defer t.drop(name)
	hash, err := t.hash(name)
	if err != nil {
		return nil, nil, err
	}
	key := fileKey{name, hash}
	if known, ok := l.files.get(key); ok {
		return known, nil, nil
	}
	data, err := t.read(name)
	if broken := (*readError)(nil); errors.As(err, &broken) {
		return nil, nil, err
	}
	return nil, &fileJob{key: key, data: data, fault: err, limits: l.opts.Limits}, nil
}

// A fileJob parses one file.
type fileJob struct {
	key    fileKey
	data   []byte
	fault  error // why there is no data
	limits Limits
	result *parsed
}

func (j *fileJob) run(words vocabulary) {
	if j.fault != nil {
		j.result = &parsed{problems: Problems{{Origin: api.Origin{Path: j.key.path}, Severity: Error, Message: j.fault.Error()}}}
		return
	}
	j.result = parseFile(j.key.path, j.data, j.limits, words)
	j.data = nil
}

// owner returns the kustomization that decides about a file; empty if the file
// is a plain manifest.
func (g *graph) owner(name string) string {
	if file := g.owned[name]; file != "" {
		return file
	}
	return g.ownedDirs[path.Dir(name)]
}
