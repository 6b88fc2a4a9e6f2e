// main of a compiled job.
extern "C" int titan_job_main(int argc, char** argv);

int main(int argc, char** argv) { return titan_job_main(argc, argv); }
