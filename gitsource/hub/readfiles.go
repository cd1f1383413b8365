package hub

import (
	"sync"

	"github.com/gitfleet/gitfleet/gitsource/hub/build"
	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/gitsource/hub/limit"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/gitsource/hub/tree"
	"github.com/gitfleet/gitfleet/placement/api"
)

// readFiles parses the plain manifests. Files are read sequentially and parsed concurrently;
// large files are parsed one at a time, since their nodes take much more memory than their
// text.
func (l *Loader) readFiles(t *tree.Tree, w *walk, g *build.Graph, a *assembly) error {
	var jobs []*fileJob
	budget := &limit.Budget{Limit: a.limits.CommitSize - a.size}
	var group sync.WaitGroup
	defer group.Wait()
	for _, name := range w.manifests {
		if owner, listed := g.Owner(name); owner != "" {
			if !listed {
				a.unlisted(name, owner)
			}
			continue
		}
		if budget.Exceeded() {
			break
		}
		job, err := l.readFile(t, name)
		if err != nil {
			return err
		}
		jobs = append(jobs, job)
		if job.result != nil {
			budget.Charge(job.result.size)
			continue
		}
		alone := len(job.data) > largeFile
		if alone {
			group.Wait()
		}
		interned := <-l.interners
		group.Go(func() {
			job.run(interned, budget)
			l.interners <- interned
		})
		if alone {
			group.Wait()
		}
	}
	group.Wait()
	return l.addFiles(jobs, a)
}

// largeFile is the size of files that are parsed one at a time.
const largeFile = 256 << 10

// addFiles adds parsed files in order until the commit is too large. A file that was cut
// because files parsed earlier had used up the budget is parsed again.
func (l *Loader) addFiles(jobs []*fileJob, a *assembly) error {
	for _, job := range jobs {
		if job.result.cut {
			interned := <-l.interners
			job.run(interned, &limit.Budget{Limit: a.limits.CommitSize - a.size})
			l.interners <- interned
		}
		if a.addParsed(job.result); a.full {
			return nil
		}
	}
	for _, job := range jobs {
		if !job.known {
			l.files.Put(job.key, job.result)
		}
	}
	return nil
}

// readFile returns the job that parses a file. The job is already done if the file is cached.
func (l *Loader) readFile(t *tree.Tree, name string) (*fileJob, error) {
	hash, err := t.Hash(name)
	if err != nil {
		return nil, err
	}
	key := fileKey{name, hash}
	if known, ok := l.files.Get(key); ok {
		return &fileJob{key: key, result: known, known: true}, nil
	}
	data, fault, err := t.Read(name)
	return &fileJob{key: key, data: data, fault: fault, limits: l.opts.Limits}, err
}

// A fileJob parses one file.
type fileJob struct {
	key    fileKey
	data   []byte
	fault  string // why the file is not parsed
	limits Limits
	result *parsed
	known  bool // the file was cached by an earlier load
}

func (j *fileJob) run(interned document.Interner, budget *limit.Budget) {
	if j.fault != "" {
		j.result = &parsed{problems: problem.List{{Origin: api.Origin{Path: j.key.path}, Severity: problem.Error, Message: j.fault}}}
		return
	}
	j.result = parseFile(j.key.path, j.data, j.limits, interned, budget)
	if !j.result.cut {
		j.data = nil
	}
}
