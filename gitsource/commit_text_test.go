package gitsource

import (
	"testing"

	"github.com/gitfleet/gitfleet/gitsource/objects"
)

func TestTextOfCommitsCannotMoveACursor(t *testing.T) {
	c := objects.Commit{Author: "Eve\x1b[2J", Email: "eve@example.com\u202e", Message: "harmless\x1b]0;title\x07\ttext\r\n\nbody\x1b[2J"}
	got := publicCommit(&c)
	if want := "Eve\uFFFD[2J"; got.Author != want {
		t.Errorf("author %q, want %q", got.Author, want)
	}
	if want := "eve@example.com\uFFFD"; got.Email != want {
		t.Errorf("email %q, want %q", got.Email, want)
	}
	if want := "harmless\uFFFD]0;title\uFFFD text"; got.Subject != want {
		t.Errorf("subject %q, want %q", got.Subject, want)
	}
}
