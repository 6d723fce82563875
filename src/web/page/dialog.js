// A question before something is changed. It says what will happen, to how many, and what came of it.
import {Component, Fragment, html} from './dom.js';
import {Button} from './parts.js';

// question: {title, text, confirm, danger, fields, run: async (values) -> notice}
// fields: {name, label, hint, type, options, value, required, pattern, placeholder}
export class Dialog extends Component {
  constructor() {
    super();
    this.element = {current: null};
    this.state = {busy: false, refused: null};
  }

  componentDidMount() {
    this.element.current.showModal();
  }

  // The fields are read from the form, so that a refresh behind the dialog cannot touch them.
  async submit(e) {
    e.preventDefault();
    const values = Object.fromEntries([...new FormData(e.currentTarget)].map(([k, v]) => [k, v.trim()]).filter(([, v]) => v !== ''));
    this.setState({busy: true, refused: null});
    try {
      await this.props.question.run(values);
      this.element.current?.close();
    } catch (refused) {
      this.setState({busy: false, refused});
    }
  }

  render({question: q, onClose}, {busy, refused}) {
    return html`<dialog ref=${this.element} aria-labelledby="dialog-title" onClose=${onClose}>
      <form onSubmit=${(e) => this.submit(e)}>
        <h2 id="dialog-title">${q.title}</h2>
        ${q.text && html`<p>${q.text}</p>`}
        ${(q.fields ?? []).map((f) => html`<${Field} key=${f.name} field=${f} />`)}
        ${refused && html`<p class="notice refused" role="alert">${refused.message} <code>${refused.code}</code></p>`}
        <p class="buttons"><${Button} onClick=${() => this.element.current.close()}>Leave it<//>
          <button type="submit" class=${q.danger ? 'danger' : 'main'} disabled=${busy}>${busy ? 'One moment…' : q.confirm}</button></p>
      </form>
    </dialog>`;
  }
}

export function Field({field: f}) {
  const id = `field-${f.name}`;
  const common = {id, name: f.name, required: f.required, 'aria-describedby': f.hint ? `${id}-hint` : undefined};
  const control = f.options
    ? html`<select ...${common} onChange=${f.onChange}>${f.options.map(([value, label]) => html`<option value=${value}
      selected=${value === f.value}>${label}</option>`)}</select>`
    : f.type === 'textarea'
      ? html`<textarea ...${common} rows=${f.rows ?? 6} spellcheck=${false} defaultValue=${f.value ?? ''}></textarea>`
      : html`<input ...${common} type=${f.type ?? 'text'} autocomplete="off" spellcheck=${false} defaultValue=${f.value ?? ''}
        placeholder=${f.placeholder}
          pattern=${f.pattern} list=${f.list} min=${f.min} max=${f.max} step=${f.step} />`;
  return html`<${Fragment}><label for=${id}>${f.label}</label>${control}${f.hint && html`<small id=${`${id}-hint`}>${f.hint}</small>`}<//>`;
}

export const SPAN = {pattern: '([0-9]+(ms|s|m|h|d))+', placeholder: '10m', hint: 'For example 90s, 10m or 1h30m.'};
