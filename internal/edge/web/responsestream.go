package web

// happening is one event of a response's stream. Exactly the fields of its kind
// are set; the indices of kinds that have them are never left out.
type happening struct {
	Type     string    `json:"type"`
	Sequence int       `json:"sequence_number"`
	Response *response `json:"response,omitempty"`

	ItemID       string      `json:"item_id,omitempty"`
	OutputIndex  *int        `json:"output_index,omitempty"`
	ContentIndex *int        `json:"content_index,omitempty"`
	Item         *outputItem `json:"item,omitempty"`
	Part         *outputText `json:"part,omitempty"`
	Delta        *string     `json:"delta,omitempty"`
	Text         *string     `json:"text,omitempty"`
	Name         string      `json:"name,omitempty"`
	Arguments    *string     `json:"arguments,omitempty"`
	Logprobs     *[]struct{} `json:"logprobs,omitempty"`
}

// streamError ends a stream that can't be completed.
type streamError struct {
	Type     string  `json:"type"`
	Sequence int     `json:"sequence_number"`
	Code     *string `json:"code"`
	Message  string  `json:"message"`
	Param    *string `json:"param"`
}

func (a *responseAnswer) event(st *stream, h happening) error {
	h.Sequence = a.seq
	a.seq++
	return st.event(h.Type, h)
}

func (a *responseAnswer) events(st *stream, all ...happening) error {
	for _, h := range all {
		if err := a.event(st, h); err != nil {
			return err
		}
	}
	return nil
}

func (a *responseAnswer) begin(st *stream) error {
	return a.events(st, happening{Type: "response.created", Response: a.response}, happening{Type: "response.in_progress", Response: a.response})
}

// inText is an event about the message's only part.
func (a *responseAnswer) inText(kind string) happening {
	return happening{Type: kind, ItemID: a.message, OutputIndex: new(int), ContentIndex: new(int)}
}

func (a *responseAnswer) say(st *stream, text string) error {
	if !a.open {
		a.open = true
		item, part := newMessage(a.message, "in_progress"), newText("")
		added := a.inText("response.content_part.added")
		added.Part = &part
		if err := a.events(st, happening{Type: "response.output_item.added", OutputIndex: new(int), Item: &item}, added); err != nil {
			return err
		}
	}
	a.text.WriteString(text)
	delta := a.inText("response.output_text.delta")
	delta.Delta, delta.Logprobs = &text, &[]struct{}{}
	return a.event(st, delta)
}

func (a *responseAnswer) end(st *stream, done said) error {
	text := a.text.String()
	a.put(done, text)
	if a.open {
		part := newText(text)
		textDone, partDone := a.inText("response.output_text.done"), a.inText("response.content_part.done")
		textDone.Text, textDone.Logprobs, partDone.Part = &text, &[]struct{}{}, &part
		if err := a.events(st, textDone, partDone, happening{Type: "response.output_item.done", OutputIndex: new(int), Item: &a.Output[0]}); err != nil {
			return err
		}
	}
	for i, c := range done.calls {
		at := len(a.Output) - len(done.calls) + i
		begun, item := functionCall(c, "in_progress", ""), a.Output[at]
		err := a.events(st,
			happening{Type: "response.output_item.added", OutputIndex: &at, Item: &begun},
			happening{Type: "response.function_call_arguments.delta", ItemID: item.ID, OutputIndex: &at, Delta: &c.Arguments},
			happening{Type: "response.function_call_arguments.done", ItemID: item.ID, OutputIndex: &at, Name: c.Name, Arguments: &c.Arguments},
			happening{Type: "response.output_item.done", OutputIndex: &at, Item: &item},
		)
		if err != nil {
			return err
		}
	}
	kind := "response." + a.Status
	if done.failed() != nil { // there is no event for one that was cancelled
		kind = "response.failed"
		a.fail(done)
	}
	return a.event(st, happening{Type: kind, Response: a.response})
}

func (a *responseAnswer) broken(st *stream, f failure) error {
	e := f.openAI().Error
	return st.event("error", streamError{Type: "error", Sequence: a.seq, Code: e.Code, Message: e.Message, Param: e.Param})
}
