package secret

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"

	"filippo.io/age"
	"filippo.io/age/armor"
)

func (s *Store) fromFile(ctx context.Context, name string) (string, error) {
	all, err := s.openFile(ctx)
	if err != nil {
		return "", err
	}
	value, ok := all[name]
	if !ok {
		return "", ErrUnknown
	}
	return value, nil
}

// openFile returns what the age file holds; nothing if there is none.
func (s *Store) openFile(ctx context.Context) (map[string]string, error) {
	if s.opened != nil {
		return s.opened, nil
	}
	sealed, err := os.ReadFile(s.path(fileName))
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, err
	}
	id, err := s.identity(ctx)
	if err != nil {
		return nil, err
	}
	all, err := unseal(sealed, id)
	if err != nil {
		with := "the identity in " + s.path(keyName)
		if s.phrase != "" {
			with = "this passphrase"
		}
		s.phrase = ""
		return nil, fmt.Errorf("%s can't be opened with %s: %w", s.path(fileName), with, err)
	}
	s.opened = all
	return all, nil
}

func unseal(sealed []byte, id age.Identity) (map[string]string, error) {
	r, err := age.Decrypt(armor.NewReader(bytes.NewReader(sealed)), id)
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	if json.Unmarshal(plain, &all) != nil {
		return nil, errors.New("it does not hold what it should") // the decoder's own words may quote it
	}
	return all, nil
}

// identity opens the file that is there: the one in secrets.key or, without
// that, the passphrase.
func (s *Store) identity(ctx context.Context) (age.Identity, error) {
	key, err := s.readKey()
	if err != nil {
		return nil, err
	}
	if key != nil {
		return key, nil
	}
	if s.phrase == "" {
		if s.phrase, err = s.passphrase(ctx, false); err != nil {
			return nil, err
		}
	}
	if s.phrase == "" {
		return nil, fmt.Errorf("%s can't be opened: there is no %s beside it; if it was sealed with a passphrase, set GOCLAW_PASSPHRASE or start goclaw on a terminal; if its key is lost, remove %s and %s and enter the keys anew",
			s.path(fileName), keyName, fileName, indexName)
	}
	return age.NewScryptIdentity(s.phrase)
}

func (s *Store) passphrase(ctx context.Context, fresh bool) (string, error) {
	if s.options.Passphrase == nil {
		return "", nil
	}
	return s.options.Passphrase(ctx, fresh)
}

// readKey returns nil if there is no secrets.key.
func (s *Store) readKey() (*age.X25519Identity, error) {
	path := s.path(keyName)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		return nil, fmt.Errorf("%s can be read by others; chmod 600 %s, and give its secrets new values if somebody may have", path, path)
	}
	ids, err := age.ParseIdentities(bytes.NewReader(data))
	if err == nil && len(ids) == 1 {
		if id, ok := ids[0].(*age.X25519Identity); ok {
			return id, nil
		}
	}
	return nil, fmt.Errorf("%s holds no age identity", path) // err may quote it
}

// changeFile seals the file anew after change.
func (s *Store) changeFile(ctx context.Context, change func(map[string]string)) error {
	s.opened = nil // another process may have changed it since
	all, err := s.openFile(ctx)
	if err != nil {
		return err
	}
	all = maps.Clone(all)
	change(all)
	to, err := s.recipient(ctx)
	if err != nil {
		return err
	}
	plain, err := json.Marshal(all)
	if err != nil {
		return err
	}
	var sealed bytes.Buffer
	text := armor.NewWriter(&sealed)
	w, err := age.Encrypt(text, to)
	if err != nil {
		return err
	}
	_, err = w.Write(plain)
	if err := errors.Join(err, w.Close(), text.Close()); err != nil {
		return err
	}
	if err := s.write(fileName, sealed.Bytes()); err != nil {
		return err
	}
	s.opened = all
	return nil
}

// recipient is for whom the file is sealed: as it was or, for a fresh one, the
// passphrase if one is given, else an identity that is made now.
func (s *Store) recipient(ctx context.Context) (age.Recipient, error) {
	key, err := s.readKey()
	if err != nil {
		return nil, err
	}
	if key != nil {
		return key.Recipient(), nil
	}
	if s.phrase == "" {
		if s.phrase, err = s.passphrase(ctx, true); err != nil {
			return nil, err
		}
	}
	if s.phrase != "" {
		to, err := age.NewScryptRecipient(s.phrase)
		if err == nil && s.options.WorkFactor > 0 {
			to.SetWorkFactor(s.options.WorkFactor)
		}
		return to, err
	}
	if key, err = age.GenerateX25519Identity(); err != nil {
		return nil, err
	}
	return key.Recipient(), s.write(keyName, fmt.Appendf(nil, "# opens %s; keep it out of backups that hold that file\n%s\n", fileName, key))
}
