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

// locate gives problems and changed objects their lines in the head of a pull request, and notes which problems are on
// lines that it adds. Those of a merge may be others, if the base has changed the same file.
func (v *Reviewer) locate(ctx context.Context, pr forge.PullRequest, merged fs.FS, r *Result) {
	r.Problems = slices.Clone(r.Problems)
	listed := r.Problems[:min(maxProblems, len(r.Problems))]
	contents := r.Changes.Contents[:min(maxContents, len(r.Changes.Contents))]
	var positions []gitsource.Position
	for _, p := range listed {
		positions = append(positions, gitsource.Position{Path: p.Path, Line: p.Line})
	}
	for _, c := range contents {
		positions = append(positions, gitsource.Position{Path: c.After.Origin.Path, Line: c.After.Origin.Line})
	}
	if len(positions) == 0 {
		return
	}
	lines, err := v.cfg.Source.HeadLines(ctx, v.tip, pr.Head, merged, positions)
	if err != nil {
		if ctx.Err() == nil {
			v.cfg.Log.Warn("lines not found in a pull request", "url", pr.URL, "commit", pr.Head, "err", err)
		}
		return
	}
	for i, line := range lines {
		if i >= len(listed) {
			r.contentLines = append(r.contentLines, line.Line)
			continue
		}
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

// markerEnd ends a marker.
const markerEnd = " -->"

// writtenMarker begins the list of the problems that were written to lines, which is in the
// comment with the plan.
const writtenMarker = "<!-- gitfleet problems on lines: "

// writtenText returns the hidden list of problems that were written to lines; empty if there are
// none.
func writtenText(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return writtenMarker + strings.Join(ids, " ") + markerEnd + "\n"
}

// writtenProblems returns the list that is in a comment with a plan. It is looked for above the
// title, since the rest has texts of the pull request.
func writtenProblems(existing *forge.Comment) []string {
	if existing == nil {
		return nil
	}
	markers, _, _ := strings.Cut(existing.Body, planTitle)
	return strings.Fields(between(markers, writtenMarker, markerEnd))
}

// between returns the text between two others; empty if they are not there.
func between(text, start, end string) string {
	_, text, _ = strings.Cut(text, start)
	text, _, _ = strings.Cut(text, end)
	return text
}

// lineComments are the comments on lines that the pull request adds, and the ID of the problem of
// each. The ID does not depend on the line: it is the same when later commits move the line. Only
// problems that refuse the commit have comments: a forge may require that each is resolved before
// the merge.
func (r *Result) lineComments(fleet string) (comments []forge.LineComment, ids []string) {
	before := map[string]int{}
	for _, i := range r.onAddedLines {
		p := r.Problems[i]
		if p.Severity != problem.Error {
			continue
		}
		name := strings.Join([]string{p.Path, p.Field, string(p.Severity), p.Message}, "\x00")
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", name, before[name]))
		before[name]++
		id := hex.EncodeToString(sum[:8])
		ids = append(ids, id)
		comments = append(comments, forge.LineComment{
			Path: p.Path, Line: p.Line, Body: lineMarker(fleet) + id + markerEnd + "\ngitfleet plan for the fleet " + markdown.Code(fleet) + ": " + problemMessage(p) + "\n",
		})
	}
	return comments, ids
}

// commentOnLines writes problems to the lines that they are at, each once for a pull request, and
// returns the IDs of all that are written, beginning with those that are known. The comment with
// the plan has all problems: a forge that refuses this keeps nothing else from being written.
func (v *Reviewer) commentOnLines(ctx context.Context, r *review, result *Result, known []string) (written []string, err error) {
	comments, ids := result.lineComments(v.cfg.Fleet)
	if len(known) >= maxAllLineComments || !slices.ContainsFunc(ids, func(id string) bool { return !slices.Contains(known, id) }) {
		return known, nil
	}
	written, err = v.addLineComments(ctx, r.pr, comments, ids, known)
	switch {
	case err == nil:
		v.linesRefused = false
		return written, nil
	case ctx.Err() != nil, forge.IsGeneral(err) && !isInternal(err):
		return written, err
	case errors.Is(err, forge.ErrNotReady) && r.retry.Failures() < maxLineRetries:
		return written, err
	case !v.linesRefused:
		v.linesRefused = true
		v.cfg.Log.Warn("comments on lines refused by the forge; the comment with the plan has all problems", "url", r.pr.URL, "commit", r.pr.Head, "err", err)
	}
	return written, nil
}

// addLineComments writes the comments that the pull request does not have yet, and has not had:
// one that somebody deletes stays deleted.
func (v *Reviewer) addLineComments(ctx context.Context, pr forge.PullRequest, comments []forge.LineComment, ids, written []string) ([]string, error) {
	bodies, err := v.cfg.Forge.FindLineComments(ctx, pr.Number, lineMarker(v.cfg.Fleet))
	if err != nil {
		return written, err
	}
	for _, body := range bodies {
		if id := between(body, lineMarker(v.cfg.Fleet), markerEnd); !slices.Contains(written, id) {
			written = append(written, id)
		}
	}
	var missing []forge.LineComment
	var added []string
	for i, c := range comments {
		if !slices.Contains(written, ids[i]) {
			missing, added = append(missing, c), append(added, ids[i])
		}
	}
	n := max(0, min(maxLineComments, maxAllLineComments-len(written), len(missing)))
	if n == 0 {
		return written, nil
	}
	text := fmt.Sprintf("gitfleet plan of %s for the fleet %s: %s on lines of this pull request. The comment with the plan has all problems.\n", shortHash(pr.Head), markdown.Code(v.cfg.Fleet), markdown.Count(n, "problem"))
	if err := v.cfg.Forge.CommentOnLines(ctx, pr.Number, pr.Head, text, missing[:n]); err != nil {
		return written, err
	}
	return append(written, added[:n]...), nil
}

// isInternal reports whether a forge has failed on one request, and not as a whole.
func isInternal(err error) bool {
	answer, ok := errors.AsType[*forge.StatusError](err)
	return ok && answer.Status == http.StatusInternalServerError
}
