package review

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/gitsource/forge/markdown"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
)

const (
	// maxLineComments bounds the comments on lines that are written for one plan.
	maxLineComments = 20
	// maxAllLineComments bounds those of one pull request, however many commits it gets.
	maxAllLineComments = 100
	// maxLineRetries is how often comments on lines are tried again that the forge is not ready
	// for.
	maxLineRetries = 4
)

// locate gives problems their lines in the head of a pull request, and notes which of these lines
// it adds. Those of a merge may be others, if the base has changed the same file.
func (v *Reviewer) locate(ctx context.Context, pr forge.PullRequest, merged fs.FS, r *Result) {
	r.Problems = slices.Clone(r.Problems)
	listed := r.Problems[:min(maxProblems, len(r.Problems))]
	if len(listed) == 0 {
		return
	}
	positions := make([]gitsource.Position, len(listed))
	for i, p := range listed {
		positions[i] = gitsource.Position{Path: p.Path, Line: p.Line}
	}
	lines, err := v.cfg.Source.HeadLines(ctx, v.tip, pr.Head, merged, positions)
	if err != nil {
		if ctx.Err() == nil {
			v.cfg.Log.Warn("lines of problems not found in a pull request", "url", pr.URL, "commit", pr.Head, "err", err)
		}
		return
	}
	for i, line := range lines {
		if line.Line > 0 {
			listed[i].Line = line.Line
		}
		if line.Added {
			r.onAddedLines = append(r.onAddedLines, i)
		}
	}
}

// lineMarker is how the comments of a fleet on lines are found again.
func lineMarker(fleet string) string { return "<!-- gitfleet problem of " + fleet + ": " }

// lineComments are the comments on lines that the pull request adds, and the marker of each. The
// marker is that of the problem, and not of the line: it is the same when later commits move the
// line. Only problems that refuse the commit have comments: a forge may require that each is
// resolved before the merge.
func (r *Result) lineComments(fleet string) (comments []forge.LineComment, markers []string) {
	before := map[string]int{}
	for _, i := range r.onAddedLines {
		p := r.Problems[i]
		if p.Severity != problem.Error {
			continue
		}
		name := strings.Join([]string{p.Path, p.Field, string(p.Severity), p.Message}, "\x00")
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", name, before[name]))
		before[name]++
		marker := lineMarker(fleet) + hex.EncodeToString(sum[:8]) + " -->"
		markers = append(markers, marker)
		comments = append(comments, forge.LineComment{
			Path: p.Path, Line: p.Line, Body: marker + "\ngitfleet plan for the fleet " + markdown.Code(fleet) + ": " + problemMessage(p) + "\n",
		})
	}
	return comments, markers
}

// commentOnLines writes problems to the lines that they are at, each once for a pull request. The
// comment with the plan has all of them: a forge that refuses this keeps nothing else from being
// written.
func (v *Reviewer) commentOnLines(ctx context.Context, r *review, result *Result) error {
	comments, markers := result.lineComments(v.cfg.Fleet)
	if len(comments) == 0 {
		return nil
	}
	err := v.addLineComments(ctx, r.pr, comments, markers)
	switch {
	case err == nil:
		v.linesRefused = false
		return nil
	case ctx.Err() != nil, forge.IsGeneral(err) && !isInternal(err):
		return err
	case errors.Is(err, forge.ErrNotReady) && r.retry.Failures() < maxLineRetries:
		return err
	case !v.linesRefused:
		v.linesRefused = true
		v.cfg.Log.Warn("comments on lines refused by the forge; the comment with the plan has all problems", "url", r.pr.URL, "commit", r.pr.Head, "err", err)
	}
	return nil
}

// addLineComments writes the comments that the pull request does not have yet.
func (v *Reviewer) addLineComments(ctx context.Context, pr forge.PullRequest, comments []forge.LineComment, markers []string) error {
	written, err := v.cfg.Forge.FindLineComments(ctx, pr.Number, lineMarker(v.cfg.Fleet))
	if err != nil {
		return err
	}
	var missing []forge.LineComment
	for i, c := range comments {
		if !slices.ContainsFunc(written, func(body string) bool { return strings.Contains(body, markers[i]) }) {
			missing = append(missing, c)
		}
	}
	missing = missing[:max(0, min(maxLineComments, maxAllLineComments-len(written), len(missing)))]
	if len(missing) == 0 {
		return nil
	}
	text := fmt.Sprintf("gitfleet plan of %s for the fleet %s: %s on lines of this pull request. The comment with the plan has all problems.\n", short(pr.Head), markdown.Code(v.cfg.Fleet), count(len(missing), "problem"))
	return v.cfg.Forge.CommentOnLines(ctx, pr.Number, pr.Head, text, missing)
}

// isInternal reports whether a forge has failed on one request, and not as a whole.
func isInternal(err error) bool {
	answer, ok := errors.AsType[*forge.StatusError](err)
	return ok && answer.Status == http.StatusInternalServerError
}
