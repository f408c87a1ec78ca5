"""Texts and dialogues that cannot be read or learned from."""

from .entry import Trouble

TROUBLES = (
    Trouble(
        "… does not exist; check the name and the folder.",
        "The path leads nowhere. A relative path starts at the folder that the notebook lies in, "
        "and from a terminal at the folder you are in.",
        '`import os; os.getcwd()` tells where you are; `lab.folder("15")` is where a lesson '
        "writes.",
    ),
    Trouble(
        "… is a file; name the folder that it lies in.",
        "This place wants a folder with texts, and got one file.",
        "Give the folder; all its .txt and .md files are read.",
    ),
    Trouble(
        "… is a folder; name a file in it.",
        "This place reads one file. On some systems a folder's name looks like a file's.",
        "Add the file's name, such as `data/pretrain.txt`.",
    ),
    Trouble(
        "… cannot be read: ….",
        "The file is there, and the system does not let you read it; its reason stands at the end.",
        "Check whose file it is (`ls -l`), and whether another program, such as an editor on "
        "Windows, holds it.",
    ),
    Trouble(
        "… has no text; write at least one line into it.",
        "The file is empty, or holds only blank lines. An editor that has not saved yet leaves "
        "such a file behind.",
        "Save in the editor, and look at the file's size.",
    ),
    Trouble(
        "… has no .txt or .md file…. Save your texts as plain text, in UTF-8.",
        "Word and PDF files hold much beside the text, so they are not read.",
        "In the other program choose *Save as → plain text (.txt)*, with UTF-8 as the encoding.",
    ),
    Trouble(
        "… has … characters of text, and at least … are needed to learn from; put more texts into "
        "it.",
        "From a few pages a model learns nothing but those pages by heart, so the lesson would "
        "show nothing.",
        "Add texts of the same kind. For a trial, `read_folder(path, least=1)` lowers the limit.",
    ),
    Trouble(
        "pieces of … characters are not possible; choose 1 or more.",
        "The largest length of a piece must leave room for a character.",
        "Leave the argument out; the default is 4,000.",
    ),
    Trouble(
        "… different documents cannot be split with a share of … held out; give at least 2, and a "
        "share between 0 and 1 (cut_documents cuts a long one).",
        "Some texts are kept back to judge the model on. From one text none can be kept back; the "
        "same text twice counts as one.",
        "Cut a long text with `cut_documents`, or put lines of `***` between its chapters; give a "
        "share such as 0.1.",
    ),
    Trouble(
        "…, line …, byte …: 0x… is not UTF-8; save the file as UTF-8 (older Windows editors write "
        "cp949 or cp1252).",
        "The file was saved in an older encoding, in which other bytes stand for the letters. "
        "Guessing would give wrong letters without a word.",
        'Open it in the editor that wrote it and save as UTF-8. In Python: `open(new, "w", '
        'encoding="utf-8").write(open(old, encoding="cp949").read())`.',
    ),
    Trouble(
        "…, character …: U+… is invisible and no text; remove it, or save the file anew as UTF-8.",
        "A control character slipped in: from a PDF, a terminal, or a file saved as UTF-16. The "
        "model would learn it as a token.",
        "Delete the character at this place; many at once mean that the whole file has another "
        "encoding.",
    ),
    Trouble(
        '…: too deeply nested; write {"user": "Who are you?", "assistant": "I am a model."}.',
        "A line of dialogues is one flat object; this one holds objects in objects without end.",
        "Write one line for each dialogue, with two texts in it, as in the example.",
    ),
    Trouble(
        '…: …; write {"user": "Who are you?", "assistant": "I am a model."}.',
        "This line is no JSON: a quote or a comma is missing, a line break stands inside a text, "
        "or the quotes are “curly”. The message gives line and column.",
        'Straight quotes `"` around names and texts, `\\n` for a line break inside, `\\"` for a '
        "quote inside.",
    ),
    Trouble(
        '…: this is no JSON object; write {"user": "Who are you?", "assistant": "I am a model."}.',
        "The line is JSON, but a list or a bare text. One large list over many lines is another "
        "format.",
        "One `{…}` on each line, and no `[` around them.",
    ),
    Trouble(
        '…: the field "…" is missing; write {"user": "Who are you?", "assistant": "I am a '
        'model."}.',
        'Every dialogue has a question, "user", and an answer, "assistant". Names such as '
        '"prompt" or "question" are not known.',
        "Rename the fields; small letters count.",
    ),
    Trouble(
        '…: … is a field too many; write {"user": "Who are you?", "assistant": "I am a model."}.',
        "A line has exactly the two fields; anything else would be left out in silence.",
        "Take the field away. Dialogues of several turns become several lines.",
    ),
    Trouble(
        '…: the field "…" is …; write a text into it.',
        "The field is empty, or a number or null instead of a text.",
        "Put quotes around it, and something between them.",
    ),
    Trouble(
        "the field … stands twice",
        "JSON allows it, and keeps only the last one; here it is more likely a slip.",
        "Keep one, or make two dialogues of it.",
    ),
    Trouble(
        "a row needs 2 tokens or more and a context of 1 or more, and has … tokens and a context "
        "of …; give a longer text.",
        "From a single token nothing can be predicted: there is no next one.",
        "Give a text of at least one character; its end token is the second.",
    ),
    Trouble(
        "a sentence is empty; remove it, or write something into it.",
        "There is an empty text in the list, which would teach only its own end.",
        "`[s for s in sentences if s.strip()]`.",
    ),
    Trouble(
        "there are 0 sentences to learn, and at least 1 is needed.",
        "The list that reached training is empty; a filter before it took everything.",
        "Print its length after each step.",
    ),
    Trouble(
        "there are 0 dialogues to learn, and at least 1 is needed.",
        "The list is empty, often because the path or the filter was wrong.",
        "Print `len(dialogues)` after reading.",
    ),
    Trouble(
        "the answer to … is empty; write one.",
        "The model learns only the answer's tokens, and here are none.",
        "Write an answer, or take the dialogue out.",
    ),
    Trouble(
        "the dialogue … has … tokens, and the context is …; shorten the dialogue, or choose a "
        "longer context.",
        "Question and answer must fit into the context together; cutting would take the answer's "
        "end, and with it the end token.",
        "Shorten it, or train with a longer `context_length`. A tokenizer made from other texts "
        "needs more tokens for the same words.",
    ),
    Trouble(
        "a batch of 0 rows cannot be made; give at least 1.",
        "The list of rows is empty, or the slice of it that you took.",
        "Check the slice: `rows[8:16]` of five rows is empty.",
    ),
    Trouble(
        "the stories cannot be written to … (…); choose another folder.",
        "The texts that lesson 15 makes need about a megabyte in this folder, and the system "
        "refuses.",
        'Choose a folder of your own, such as `lab.folder("15") / "stories"`.',
    ),
    Trouble(
        "the question is empty; write something.",
        "A question of no characters, or of spaces only, has nothing to answer.",
        "Type a question before Enter.",
    ),
    Trouble(
        "the question has bytes that are not …; save it as that, or set the variable "
        "PYTHONIOENCODING to what it is.",
        "The terminal, or the file that is piped in, uses another encoding than Python expects.",
        "`PYTHONIOENCODING=cp949 llmcl chat model.gguf` for a Korean Windows terminal; best is "
        "UTF-8 everywhere.",
    ),
    Trouble(
        "codec can't decode byte",
        "A file is opened without naming its encoding, and Windows takes its old one (cp949, "
        "cp1252). All of llmcl names UTF-8; code of your own must too.",
        '`open(path, encoding="utf-8")`.',
        kind="other",
    ),
)
