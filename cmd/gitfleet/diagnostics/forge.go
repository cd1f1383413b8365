package diagnostics

import (
	"context"
	"errors"
	"net/http"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// tokenPage is where the documentation has the permissions of a token.
const tokenPage = "docs/drift-pull-requests.md has the permissions that it needs"

// checkForge checks that the forge accepts the token, and that it may do what the daemon does
// there, as far as the forge says so.
func checkForge(ctx context.Context, c settings.Config) []check {
	if !c.AsksForge() && !c.PullRequests.Enabled() {
		return nil
	}
	cfg := c.ForgeConfig()
	fail := func(message, fix string) []check {
		return []check{{"forge", cfg.Repository, checkFail, message, fix}}
	}
	client, err := forge.New(cfg)
	if err != nil {
		return fail(err.Error(), "correct the settings of forge")
	}
	access, err := client.Access(ctx)
	if err != nil {
		return fail(err.Error(), forgeFix(err))
	}
	var all []check
	for _, limit := range []struct {
		found        bool
		state        string
		message, fix string
	}{
		{access.Archived, checkFail, "the repository is archived: nothing can be written to it", "unarchive it, or set forge.repository to the one that is used"},
		{access.ReadOnly, checkFail, "the user " + access.User + " may only read the repository: branches cannot be pushed, nor pull requests opened or statuses set", "let the user write to the repository; " + tokenPage},
		{access.MissingScope != "", checkFail, "the token of " + access.User + " lacks the scope " + access.MissingScope, "make a token with this scope and replace the old one; " + tokenPage},
		{access.NoPullRequests, checkFail, "the repository has no pull requests", "switch them on in the settings of the repository"},
		{access.NoIssues && c.AsksForge(), checkWarn, "the repository has no issues: changes that no edit of the files makes are put back and not offered", "switch them on in the settings of the repository"},
	} {
		if limit.found {
			all = append(all, check{"forge", cfg.Repository, limit.state, limit.message, limit.fix})
		}
	}
	if len(all) == 0 {
		all = append(all, check{"forge", cfg.Repository, checkOK, "the token of " + access.User + " is accepted, and the user may write to the repository", ""})
	}
	return all
}

// forgeFix is what to do about an error of the forge.
func forgeFix(err error) string {
	answer, ok := errors.AsType[*forge.StatusError](err)
	switch {
	case !ok:
		return "check forge.url, its certificate, the network and the file of the token"
	case answer.Status == http.StatusUnauthorized:
		return "make another token and replace the old one; " + tokenPage
	case answer.Status == http.StatusForbidden && answer.RetryAfter == 0:
		return "give the token the missing permission; " + tokenPage
	case answer.Status == http.StatusNotFound:
		return "check forge.repository, and let the user of the token see it"
	case answer.Status/100 == 3:
		return "set forge.url and forge.repository to where the repository is now"
	}
	return "try again later; check that forge.url and forge.type are those of the forge"
}
