package forge

import (
	"fmt"
	"sync"
)

// tokenUser is the user of a token. The forge is asked who that is once for each token.
type tokenUser struct {
	token func() (string, error)

	mu    sync.Mutex
	known string
	user  int64
}

// id returns the ID of the user, and asks for it if the token is another one.
func (u *tokenUser) id(ask func() (int64, error)) (int64, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	token, err := u.token()
	if err != nil {
		return 0, fmt.Errorf("read the token of the forge: %w", err)
	}
	if u.known == token {
		return u.user, nil
	}
	user, err := ask()
	if err != nil {
		return 0, fmt.Errorf("ask whose the token is: %w", err)
	}
	u.known, u.user = token, user
	return user, nil
}
