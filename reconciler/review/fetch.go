package review

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/forge/markdown"
	"github.com/gitfleet/gitfleet/gitsource/hub"
)

// longestFetch is how long the plan of a pull request waits for what is fetched for it, and fetchRounds how often that may refer to
// something else that is not there.
const (
	longestFetch = 30 * time.Second
	fetchRounds  = 3
)

// load loads the merge of a pull request. What it locks newly is fetched, as for a commit of the base, unless its author may not
// write to the repository. missing is what is not there afterwards.
func (cfg *Config) load(ctx context.Context, pr forge.PullRequest, commit hub.Commit, files fs.FS) (s *hub.Snapshot, missing []string, err error) {
	s, err = cfg.Loader.Load(commit, files)
	ctx, cancel := context.WithTimeout(ctx, longestFetch)
	defer cancel()
	for round := 0; ; round++ {
		bases, charts := hub.Missing(s, err)
		if len(bases)+len(charts) == 0 || pr.Fork || round == fetchRounds || !cfg.fetch(ctx, pr, bases, charts) {
			return s, named(bases, charts), err
		}
		s, err = cfg.Loader.Load(commit, files)
	}
}

// named are the names of what is missing, each once.
func named(bases []hub.RemoteBase, charts []hub.RemoteChart) []string {
	var all []string
	for _, b := range bases {
		all = append(all, "remote base "+b.String())
	}
	for _, c := range charts {
		all = append(all, "chart "+c.String())
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// fetch fetches what is missing at the same time, and reports whether it has fetched anything.
func (cfg *Config) fetch(ctx context.Context, pr forge.PullRequest, bases []hub.RemoteBase, charts []hub.RemoteChart) bool {
	if cfg.FetchBase == nil || cfg.FetchChart == nil {
		return false
	}
	errs := make([]error, len(bases)+len(charts))
	var fetches sync.WaitGroup
	for i, b := range bases {
		fetches.Go(func() { errs[i] = cfg.FetchBase(ctx, b.URL, b.Commit) })
	}
	for i, c := range charts {
		fetches.Go(func() { errs[len(bases)+i] = cfg.FetchChart(ctx, c) })
	}
	fetches.Wait()
	fetched := false
	for _, err := range errs {
		if fetched = fetched || err == nil; err != nil && ctx.Err() == nil {
			cfg.Log.Warn("not fetched for the plan of a pull request", "url", pr.URL, "err", err)
		}
	}
	return fetched
}

// missingText says what is not in the cache, and why.
func (r *Result) missingText(s subject) string {
	if len(r.Missing) == 0 {
		return ""
	}
	why := "It could not be fetched; the log of gitfleet says why. Ask for another plan with " + markdown.Code("/gitfleet plan") + "."
	if s.fork {
		why = "Nothing is fetched for a pull request from a fork. It is fetched once this is merged; to see the plan before, push the branch to the repository itself."
	}
	return "**Not there, so that what needs it is not planned**\n\n" + items(r.Missing, maxNames, func(name string) string { return markdown.Code(shortened(name)) }) + fmt.Sprintf("\n%s\n\n", why)
}
