package gitsource

import "testing"

func TestTextOfCommitsCannotMoveACursor(t *testing.T) {
	c := commit{author: "Eve\x1b[2J", email: "eve@example.com\u202e", message: "harmless\x1b]0;title\x07\ttext\r\n\nbody\x1b[2J"}
	got := c.public()
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
