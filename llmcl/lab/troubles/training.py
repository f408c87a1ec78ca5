"""Settings, training, generating and the command line."""

from .entry import Trouble

TROUBLES = (
    Trouble(
        "d_model … cannot be split into n_heads … equal heads; choose n_heads from …, or another "
        "d_model.",
        "Each head gets an equal slice of the width, and a number left over would belong to "
        "nobody.",
        "Take one of the numbers in the message. Heads of 32 numbers are usual here: width 96, 3 "
        "heads.",
    ),
    Trouble(
        "a configuration needs the fields …, and has ….",
        "A field is missing or unknown. In a checkpoint this means that another version wrote it.",
        "Compare the two lists in the message; `Config()` shows the defaults.",
    ),
    Trouble(
        "… is …; it must be a … above zero.",
        "Sizes are counted, so they are whole and positive; 96.0 or True is none. A division "
        "(`/`) gives a floating point number even where it comes out even.",
        "`//` divides whole numbers; or write `int(…)` around it.",
    ),
    Trouble(
        "… … is unknown; choose ….",
        "This setting takes one of a few words, and yours is not among them.",
        "Copy one from the message; capitals count in `Q8_0`.",
    ),
    Trouble(
        "seed is …; choose a whole number of 0 or more.",
        "The seed starts the row of random numbers, and there are no negative rows.",
        "`--seed 0`, or any other whole number up to 19 digits.",
    ),
    Trouble(
        "… is …; choose a number above zero.",
        "Zero steps, an empty batch or a learning rate of zero would train nothing.",
        "Leave it out to get the default, or choose a positive number.",
    ),
    Trouble(
        "a schedule of rate …, steps …, warmup … and floor … is not possible; rate and steps must "
        "be above zero, floor between 0 and 1.",
        "The learning rate rises during the warm-up and falls to floor × rate at the last step; "
        "with these numbers there is no such curve.",
        "`Schedule(rate=3e-3, steps=300)` is a beginning; floor is a share, not a rate.",
    ),
    Trouble(
        "AdamW with beta1 …, beta2 …, epsilon … and decay … is not possible; the betas must be 0 "
        "or more and below 1, epsilon above zero, decay 0 or more.",
        "A beta says how much of the old average is kept; with 1 nothing new would ever come in. "
        "Epsilon keeps a division by zero away.",
        "The defaults (0.9, 0.999 or near) suit this workbook.",
    ),
    Trouble(
        "max_norm … is not possible; choose one above zero.",
        "The gradient's length is cut to this; at 0 every step would be nothing.",
        "1.0 is usual. To clip nothing, give a very large number.",
    ),
    Trouble(
        "the loss (…) or the gradient's norm (…) stopped being a number at step …; no weight was "
        "changed from that step on; choose a smaller learning rate.",
        "One step was so large that numbers passed the end of float32 and became inf or nan; from "
        "there nothing comes back. The tensor in the message is the first that was hit.",
        "Divide the learning rate by 3 to 10, or lengthen the warm-up. If that does not help, "
        "check your own kernels with `llmcl check`.",
    ),
    Trouble(
        "batch_size … is not possible; choose 1 or more.",
        "A step learns from at least one row.",
        "8 to 32 for the texts of this workbook.",
    ),
    Trouble(
        "the launcher started … processes, but mpi4py cannot be used (…); install it with `pip "
        "install 'llmcl[mpi]'`, or start llmcl without the launcher.",
        "`mpiexec` has started several processes, and without mpi4py they cannot find each other: "
        "each would train by itself, over the others' files.",
        "Install the extra, or leave `mpiexec -n …` away: one process trains the same model.",
    ),
    Trouble(
        "the launcher started … processes, but mpi4py, which uses …, sees …; use the mpiexec that "
        "belongs to it.",
        "Two MPI libraries are on this machine, such as MPICH and Open MPI. The launcher is of one "
        "and mpi4py uses the other, so each process believes that it is alone.",
        "With the extra `mpi`, take the launcher beside your Python: `.venv/bin/mpiexec`.",
    ),
    Trouble(
        "process … of … has other settings or texts than the first; give all of them the same "
        "options and files.",
        "All processes build the same batches by themselves. With other texts their rows would not "
        "belong to one batch.",
        "Copy the text files to every machine, to the same path.",
    ),
    Trouble(
        "process … of …: …",
        "In a training over MPI one process met what the second part says; all were stopped.",
        "Look the second part up; then go on with `--resume`.",
        wraps=True,
    ),
    Trouble(
        "llmcl: one of the … processes ended, so all were stopped; what was stored in … is whole, "
        "and --resume goes on from it.",
        "A process was killed, crashed or raised an error, or its machine went away. The others "
        "would wait for its gradient for ever.",
        "The reason stands above it, if there was time to say one; a process that the system "
        "killed often had no memory left. Then the same command with `--resume`.",
        kind="printed",
    ),
    Trouble(
        "there is no mpiexec here; install MPI with `pip install 'llmcl[mpi]'`, or as your system "
        "does.",
        "Lesson 14 starts several processes, and MPI's launcher was not found, neither beside this "
        "Python nor by the system.",
        "`pip install 'llmcl[mpi]'` in the same environment; the lesson goes on without it, too.",
    ),
    Trouble(
        "… processes took longer than … s; give them more, or take fewer.",
        "They were ended. With more processes than cores they wait for each other at every step.",
        "Close other programs, or start fewer processes.",
    ),
    Trouble(
        "mpiexec could not start … processes that find each other (…); see whether `mpiexec -n 2 "
        "python -m mpi4py.bench helloworld` works.",
        "The launcher or a process of it failed; its first words stand in brackets.",
        "Run the command in the message in a terminal; what it says belongs to your MPI.",
    ),
    Trouble(
        "mpiexec cannot start two processes that find each other (…).",
        "A trial of two processes failed; the last words of it stand in brackets. A sandbox that "
        "allows no sockets is a usual cause.",
        "Lesson 14 goes on without them. `mpiexec -n 2 python -m mpi4py.bench helloworld` in a "
        "terminal says more.",
        kind="printed",
    ),
    Trouble(
        "temperature … is not possible; choose 0 or more.",
        "The logits are divided by it; a negative number would turn the order round and choose "
        'the least likely first. 0 stands for "always the most likely".',
        "0 for facts, 0.7 to 1 for stories.",
    ),
    Trouble(
        "top_k … and top_p … are not possible; choose top_k 0 or more and top_p above 0, at most "
        "1.",
        "top_k is a number of tokens (0: all), top_p a share of the probability (1: all). With "
        "less than that nothing is left to choose from.",
        "Leave both out, or give `top_k=40`, `top_p=0.9`.",
    ),
    Trouble(
        "there is no token to go on from; write at least one character.",
        "A model continues a text; of no text there is no next token.",
        "Give a beginning, or `[tokenizer.end_id]` to let it begin by itself.",
    ),
    Trouble(
        "the model gives logits that are not finite; its weights are damaged.",
        "inf or nan came out of the forward pass. Training ran away, or a file was damaged.",
        "Load the last good checkpoint, and look at the loss curve for the step at which it "
        "jumped.",
    ),
    Trouble(
        "the weights do not fit this model: missing …, unknown …; use the configuration that they "
        "were saved with.",
        "Names tell the blocks: a model of three blocks has more than one of two. The "
        "configuration and the weights are of different runs.",
        "`load_model(path, engine)` builds the model that belongs to the file.",
    ),
    Trouble(
        "… has the shape …, the model needs …; use the configuration that the weights were saved "
        "with.",
        "Another width, vocabulary or context than this model's. Weights from PyTorch or GGUF are "
        "also transposed.",
        "Take configuration and weights from one file.",
    ),
    Trouble(
        "the checkpoint has no moments of AdamW, so training cannot go on from it; use the "
        "checkpoint of a run that was interrupted.",
        "AdamW remembers two averages for every weight. A finished stage is stored without them, "
        "since it is three times smaller so.",
        "`checkpoint.safetensors` has them; the others are for generating, exporting, or "
        "beginning another training.",
    ),
    Trouble(
        "another run is writing to …; wait for it, or choose another folder.",
        "Two runs in one folder would overwrite each other's checkpoints. A notebook that still "
        "runs counts.",
        "Stop the other one, or `--out another_folder`. The lock goes with the process; no file "
        "has to be deleted.",
    ),
    Trouble(
        "the folder … cannot be written (…); choose another folder.",
        "The system does not let you make or fill this folder; its reason stands in brackets.",
        "`--out` with a folder below your home folder.",
    ),
    Trouble(
        "stopped at step … of …; the checkpoint is in …, and --resume goes on from it.",
        "You, or the Stop button, interrupted the run. That is no fault: everything is stored.",
        "The same command with `--resume`. The result is the same to the last byte as without a "
        "stop.",
    ),
    Trouble(
        "… is of a run with …; use the same settings and texts, another folder, or --restart.",
        "The folder holds a run with other settings or texts. Going on would mix the two.",
        "Give the settings of before, or another `--out`; `--restart` throws the old run away.",
    ),
    Trouble(
        "… holds an unfinished run (step … of …); go on with --resume, or forget it with "
        "--restart.",
        "An earlier run was interrupted here, and it is not clear what you want of it.",
        "`--resume` goes on, `--restart` begins anew.",
    ),
    Trouble(
        "…: … The checkpoints in … are kept.",
        "The stage of training named first had to stop, for the reason in the middle. What was "
        "stored before is whole.",
        "Look the middle part up; then go on with `--resume`, or with other settings and "
        "`--restart`.",
        wraps=True,
    ),
    Trouble(
        "… Or begin anew with --restart.",
        "A checkpoint of the run that should go on cannot be read; the first part says why.",
        "Look the first part up, or give the run up with `--restart`.",
        wraps=True,
    ),
    Trouble(
        "… is no whole number of 0 or more",
        "The command line wants a number without sign, point or letters here.",
        "`--seed 7`.",
    ),
    Trouble(
        "The … changed since the checkpoint; the last digits of the result may differ from an "
        "uninterrupted run.",
        "A note: another device, group size or version adds numbers in another order, and float32 "
        "rounds otherwise. The model is as good.",
        "Nothing; to get the same bytes, go on where you began.",
        kind="printed",
    ),
    Trouble(
        "…; choose a smaller model, batch or context.",
        "The computer's own memory is full, not the device's.",
        "Close other programs, halve the batch, then the context.",
        kind="printed",
        wraps=True,
    ),
    Trouble(
        "the system refuses: ….",
        "The operating system did not let llmcl write, often because a disk behind the output is "
        "full.",
        "`df -h` shows full disks; send the output elsewhere.",
        kind="printed",
    ),
    Trouble(
        "bench measures OpenCL devices; choose one that `llmcl doctor` lists.",
        "LLMCL_DEVICE or `--device` says numpy, and there is nothing to compare NumPy with.",
        "`llmcl bench --device 0`.",
    ),
    Trouble(
        "… is no folder; make it first.",
        "The results are to be written into a folder that does not exist.",
        "`mkdir` it, or name another one.",
    ),
    Trouble(
        "… is no file; give a .gguf file.",
        'There is no file under this path; a name without ".gguf" is another name.',
        "`llmcl train --out build` writes `build/model.gguf`.",
    ),
)
